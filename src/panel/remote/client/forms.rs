//! Request parameters that not every server supports: the forms each may be sent in, and which form an endpoint accepts.
//!
//! When a server rejects one form, the same request is sent with the next. A form is remembered only when a request with it succeeds:
//! a rejection may have had another cause than its message suggests.

use std::sync::atomic::{AtomicU8, Ordering};

use super::super::{Address, RemoteRequest};
use super::failure::ServerError;
use crate::record::Grammar;

pub const SEED: usize = 0;
pub const SCHEMA: usize = 1;
pub const OBJECT: usize = 2;
pub const GRAMMAR: usize = 3;
pub const LENGTH: usize = 4;
pub const THINKING: usize = 5;

struct Parameter {
    /// In a server's error message.
    names: &'static [&'static str],
    /// As notes describe them, the preferred one first.
    forms: &'static [&'static str],
    is_in: fn(&RemoteRequest) -> bool,
}

static PARAMETERS: [Parameter; 6] = [
    Parameter {
        names: &["seed"],
        forms: &["`seed`", "no seed"],
        is_in: |request| !request.omit_seed,
    },
    Parameter {
        names: &["response_format", "json_schema", "schema", "grammar"],
        forms: &[
            "a strict `json_schema` as `response_format`",
            "a `json_schema` that is not strict",
            "a `json_object` with its schema",
            "no schema, so that its text is unconstrained",
        ],
        is_in: |request| matches!(request.grammar, Some(Grammar::JsonSchema(_))),
    },
    Parameter {
        names: &["response_format", "json_object"],
        forms: &[
            "a `json_object` as `response_format`",
            "nothing, so that its text is unconstrained",
        ],
        is_in: |request| request.grammar == Some(Grammar::JsonObject),
    },
    Parameter {
        names: &["structured_outputs", "grammar", "regex"],
        forms: &["`structured_outputs`", "no grammar, so that its text is unconstrained"],
        is_in: |request| matches!(request.grammar, Some(Grammar::Regex(_) | Grammar::Lark(_))),
    },
    Parameter {
        names: &["max_tokens"],
        forms: &["`max_tokens`", "`max_completion_tokens`"],
        is_in: |request| request.max_tokens.is_some(),
    },
    Parameter {
        names: &["chat_template_kwargs", "enable_thinking"],
        forms: &["`chat_template_kwargs`", "nothing about thinking"],
        is_in: |request| request.thinking.is_some(),
    },
];

/// Of each parameter, which of its forms it is sent in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms([u8; PARAMETERS.len()]);

/// The forms that one endpoint was found to accept.
#[derive(Debug, Default)]
pub struct LearnedForms([AtomicU8; PARAMETERS.len()]);

impl Parameter {
    /// Whether an error may be about this parameter.
    fn is_rejected_by(&self, error: &ServerError) -> bool {
        let is_named = |name: &&str| error.names_parameter(&[name]);
        match error.status {
            400 | 422 => self.names.iter().any(is_named),
            // A validator that crashed: only names that no other error contains count.
            500 | 501 => self.names.iter().filter(|name| name.contains('_')).any(is_named),
            _ => false,
        }
    }
}

impl Forms {
    pub fn of(self, parameter: usize) -> usize {
        usize::from(self.0[parameter])
    }

    /// The forms to try after `error`: the first parameter of `request` that it names, in its next form.
    pub fn after_rejection(
        mut self,
        error: &ServerError,
        request: &RemoteRequest,
    ) -> Option<Forms> {
        let rejected = PARAMETERS.iter().enumerate().position(|(index, parameter)| {
            let has_next = self.of(index) + 1 < parameter.forms.len();
            has_next && (parameter.is_in)(request) && parameter.is_rejected_by(error)
        })?;
        self.0[rejected] += 1;
        Some(self)
    }

    /// What a call has and `request` is not sent with in these forms.
    pub fn not_sent(self, request: &RemoteRequest) -> Vec<String> {
        let mut named = vec![(SEED, "seed"), (THINKING, "enable_thinking")];
        named.retain(|(index, _)| !(PARAMETERS[*index].is_in)(request) || self.of(*index) > 0);
        named.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether `request` is sent with a grammar in these forms.
    pub fn constrain(self, request: &RemoteRequest) -> bool {
        [SCHEMA, OBJECT, GRAMMAR].into_iter().any(|index| {
            let parameter = &PARAMETERS[index];
            (parameter.is_in)(request) && self.of(index) + 1 < parameter.forms.len()
        })
    }
}

impl LearnedForms {
    pub fn forms(&self) -> Forms {
        Forms(std::array::from_fn(|index| self.0[index].load(Ordering::Relaxed)))
    }

    /// Remembers forms that worked; returns a note for the user on each that is new.
    pub fn learn(&self, forms: Forms, address: &Address) -> Vec<String> {
        let note = |(index, parameter): (usize, &Parameter)| {
            let form = forms.0[index];
            let is_new = self.0[index].fetch_max(form, Ordering::Relaxed) < form;
            let (preferred, sent) = (parameter.forms[0], parameter.forms[forms.of(index)]);
            is_new.then(|| format!("{address} does not support {preferred}; sending {sent}"))
        };
        PARAMETERS.iter().enumerate().filter_map(note).collect()
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
            assert_eq!(forms.of(SCHEMA), step);
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
