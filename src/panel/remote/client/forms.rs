//! Request parameters that not every server supports: the forms each may be sent in, and which form an endpoint accepts.
//!
//! When a server rejects one form, the same request is sent with the next. A form is remembered only when a request with it succeeds:
//! a rejection may have had another cause than its message suggests.

use std::sync::atomic::{AtomicU8, Ordering};

use super::super::{Address, RemoteRequest};
use super::server_error::ServerError;
use crate::record::Grammar;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parameter {
    Seed,
    Schema,
    Object,
    Grammar,
    Length,
    Thinking,
}

const ALL: [Parameter; 6] = [
    Parameter::Seed,
    Parameter::Schema,
    Parameter::Object,
    Parameter::Grammar,
    Parameter::Length,
    Parameter::Thinking,
];

/// For each parameter, the form it is sent in: an index into [`Parameter::forms`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms([u8; ALL.len()]);

/// The forms that one endpoint was found to accept.
#[derive(Debug, Default)]
pub struct LearnedForms([AtomicU8; ALL.len()]);

impl Parameter {
    /// The forms as notes describe them, the preferred one first.
    fn forms(self) -> &'static [&'static str] {
        match self {
            Parameter::Seed => &["`seed`", "no seed"],
            Parameter::Schema => &[
                "a strict `json_schema` as `response_format`",
                "a `json_schema` that is not strict",
                "a `json_object` with its schema",
                "no schema, so that its text is unconstrained",
            ],
            Parameter::Object => &[
                "a `json_object` as `response_format`",
                "nothing, so that its text is unconstrained",
            ],
            Parameter::Grammar => {
                &["`structured_outputs`", "no grammar, so that its text is unconstrained"]
            }
            Parameter::Length => &["`max_tokens`", "`max_completion_tokens`"],
            Parameter::Thinking => &["`chat_template_kwargs`", "nothing about thinking"],
        }
    }

    /// The names of this parameter in a server's error message.
    fn names(self) -> &'static [&'static str] {
        match self {
            Parameter::Seed => &["seed"],
            Parameter::Schema => &["response_format", "json_schema", "schema", "grammar"],
            Parameter::Object => &["response_format", "json_object"],
            Parameter::Grammar => &["structured_outputs", "grammar", "regex"],
            Parameter::Length => &["max_tokens"],
            Parameter::Thinking => &["chat_template_kwargs", "enable_thinking"],
        }
    }

    fn is_in(self, request: &RemoteRequest) -> bool {
        match self {
            Parameter::Seed => !request.omit_seed,
            Parameter::Schema => matches!(request.grammar, Some(Grammar::JsonSchema(_))),
            Parameter::Object => request.grammar == Some(Grammar::JsonObject),
            Parameter::Grammar => {
                matches!(request.grammar, Some(Grammar::Regex(_) | Grammar::Lark(_)))
            }
            Parameter::Length => request.max_tokens.is_some(),
            Parameter::Thinking => request.thinking.is_some(),
        }
    }

    /// Whether an error may be about this parameter.
    fn is_rejected_by(self, error: &ServerError) -> bool {
        let is_named = |name: &&str| error.names_parameter(&[name]);
        match error.status {
            400 | 422 => self.names().iter().any(is_named),
            // A validator that crashed: only names that no other error contains count.
            500 | 501 => self.names().iter().filter(|name| name.contains('_')).any(is_named),
            _ => false,
        }
    }
}

impl Forms {
    pub fn get(self, parameter: Parameter) -> u8 {
        self.0[parameter as usize]
    }

    /// The forms to try after `error`: the first parameter of `request` that it names, in its next form.
    pub fn after_rejection(
        mut self,
        error: &ServerError,
        request: &RemoteRequest,
    ) -> Option<Forms> {
        let has_next =
            |parameter: Parameter| usize::from(self.get(parameter)) + 1 < parameter.forms().len();
        let rejected = ALL.into_iter().find(|parameter| {
            parameter.is_in(request) && has_next(*parameter) && parameter.is_rejected_by(error)
        })?;
        self.0[rejected as usize] += 1;
        Some(self)
    }

    /// What a call has and `request` is not sent with in these forms.
    pub fn not_sent(self, request: &RemoteRequest) -> Vec<String> {
        let is_left_out =
            |parameter: Parameter| !parameter.is_in(request) || self.get(parameter) > 0;
        let named = [(Parameter::Seed, "seed"), (Parameter::Thinking, "enable_thinking")];
        let named = named.into_iter().filter(|(parameter, _)| is_left_out(*parameter));
        named.map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether `request` is sent with a grammar in these forms.
    pub fn constrain(self, request: &RemoteRequest) -> bool {
        [Parameter::Schema, Parameter::Object, Parameter::Grammar].into_iter().any(|parameter| {
            let last = parameter.forms().len() - 1;
            parameter.is_in(request) && usize::from(self.get(parameter)) < last
        })
    }
}

impl LearnedForms {
    pub fn forms(&self) -> Forms {
        Forms(std::array::from_fn(|index| self.0[index].load(Ordering::Relaxed)))
    }

    /// Remembers forms that worked; returns a note for the user on each that is new.
    pub fn learn(&self, forms: Forms, address: &Address) -> Vec<String> {
        let note = |parameter: Parameter| {
            let (form, names) = (forms.get(parameter), parameter.forms());
            let is_new = self.0[parameter as usize].fetch_max(form, Ordering::Relaxed) < form;
            let (preferred, sent) = (names[0], names[usize::from(form)]);
            is_new.then(|| format!("{address} does not support {preferred}; sending {sent}"))
        };
        ALL.into_iter().filter_map(note).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> RemoteRequest {
        RemoteRequest {
            grammar: Some(Grammar::JsonSchema("{}".to_owned())),
            max_tokens: Some(8),
            ..RemoteRequest::default()
        }
    }

    fn server_error(status: u16, message: &str) -> ServerError {
        ServerError::read(status, message.as_bytes())
    }

    #[test]
    fn a_schema_gives_way_step_by_step_until_it_is_gone() {
        let refusal = server_error(400, "this response_format is unavailable");
        let mut forms = Forms::default();
        for step in 1..4 {
            assert!(forms.constrain(&request()));
            forms = forms.after_rejection(&refusal, &request()).unwrap();
            assert_eq!(forms.get(Parameter::Schema), step);
        }
        assert!(!forms.constrain(&request()));
        assert_eq!(forms.after_rejection(&refusal, &request()), None);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let thinks = RemoteRequest { thinking: Some(true), ..request() };
        assert_eq!(Forms::default().not_sent(&thinks), [] as [&str; 0]);
        let left = RemoteRequest { omit_seed: true, ..request() };
        assert_eq!(Forms::default().not_sent(&left), ["seed", "enable_thinking"]);
        let rejected = server_error(400, "no seed, please");
        let forms = Forms::default().after_rejection(&rejected, &thinks).unwrap();
        assert_eq!(forms.not_sent(&thinks), ["seed"]);
        assert_eq!(Forms::default().after_rejection(&rejected, &left), None);
    }

    #[test]
    fn only_what_was_sent_is_blamed() {
        let regex = server_error(400, "no regex here");
        assert_eq!(Forms::default().after_rejection(&regex, &request()), None);
        let thinking = server_error(400, "unknown chat_template_kwargs");
        assert_eq!(Forms::default().after_rejection(&thinking, &request()), None);
        let other = server_error(400, "the prompt is too long");
        assert_eq!(Forms::default().after_rejection(&other, &request()), None);
    }

    #[test]
    fn a_crash_is_blamed_on_unmistakable_words_alone() {
        let crash =
            |message| Forms::default().after_rejection(&server_error(500, message), &request());
        assert!(crash("('body', 'response_format', 'type')").is_some());
        assert_eq!(crash("could not seed the database schema"), None);
        assert_eq!(
            Forms::default().after_rejection(&server_error(503, "response_format"), &request()),
            None
        );
    }

    #[test]
    fn what_is_learnt_is_said_once_and_never_unlearnt() {
        let address = Address::parse("openai:m@http://box").unwrap();
        let known = LearnedForms::default();
        let forms = Forms([1, 2, 0, 0, 0, 0]);
        let notes = known.learn(forms, &address);
        assert_eq!(
            notes,
            [
                "openai:m@http://box/v1 does not support `seed`; sending no seed",
                "openai:m@http://box/v1 does not support a strict `json_schema` as `response_format`; sending a `json_object` with its schema",
            ]
        );
        assert_eq!(known.learn(forms, &address), Vec::<String>::new());
        assert_eq!(known.learn(Forms::default(), &address), Vec::<String>::new());
        assert_eq!(known.forms(), forms);
    }
}
