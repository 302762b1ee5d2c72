//! Parameters that not every server supports: the forms each may be sent in, and which form an endpoint accepts.
//!
//! A form that a server refuses gives way to the next one for the request at hand. Only when that succeeds is it
//! remembered: a refusal may have had another cause than the one its words suggest.

use std::sync::atomic::{AtomicU8, Ordering};

use super::super::{Address, RemoteRequest};
use super::complaint::Complaint;
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

/// The forms that one endpoint was found to take.
#[derive(Debug, Default)]
pub struct Known([AtomicU8; ALL.len()]);

impl Parameter {
    /// What is sent, the preferred form first, as a user would call it.
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

    /// The words by which a complaint means this parameter.
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
            Parameter::Seed => true,
            Parameter::Schema => matches!(request.grammar, Some(Grammar::JsonSchema(_))),
            Parameter::Object => request.grammar == Some(Grammar::JsonObject),
            Parameter::Grammar => {
                matches!(request.grammar, Some(Grammar::Regex(_) | Grammar::Lark(_)))
            }
            Parameter::Length => request.max_tokens.is_some(),
            Parameter::Thinking => request.thinking.is_some(),
        }
    }

    /// Whether a server may mean this parameter, in its present form, by what it says.
    fn is_blamed(self, complaint: &Complaint) -> bool {
        let names = self.names();
        match complaint.status {
            400 | 422 => complaint.blames(names),
            // A validator that crashes: only a word that no other trouble has counts.
            500 | 501 => {
                let names: Vec<&str> =
                    names.iter().copied().filter(|name| name.contains('_')).collect();
                complaint.blames(&names)
            }
            _ => false,
        }
    }
}

impl Forms {
    pub fn get(self, parameter: Parameter) -> u8 {
        self.0[parameter as usize]
    }

    /// The forms to try after `complaint`: the first parameter of `request` that it blames, one form on.
    pub fn without_blamed(
        mut self,
        complaint: &Complaint,
        request: &RemoteRequest,
    ) -> Option<Forms> {
        let has_next =
            |parameter: Parameter| usize::from(self.get(parameter)) + 1 < parameter.forms().len();
        let blamed = ALL.into_iter().find(|parameter| {
            parameter.is_in(request) && has_next(*parameter) && parameter.is_blamed(complaint)
        })?;
        self.0[blamed as usize] += 1;
        Some(self)
    }

    /// Whether a grammar goes with `request` in these forms.
    pub fn constrain(self, request: &RemoteRequest) -> bool {
        [Parameter::Schema, Parameter::Object, Parameter::Grammar].into_iter().any(|parameter| {
            let last = parameter.forms().len() - 1;
            parameter.is_in(request) && usize::from(self.get(parameter)) < last
        })
    }

    fn departure(self, parameter: Parameter, address: &Address) -> String {
        let forms = parameter.forms();
        let form = forms[usize::from(self.get(parameter))];
        format!("{address} does not support {}; sending {form}", forms[0])
    }
}

impl Known {
    pub fn forms(&self) -> Forms {
        Forms(std::array::from_fn(|index| self.0[index].load(Ordering::Relaxed)))
    }

    /// Remembers forms that worked; says what is new in them.
    pub fn learn(&self, forms: Forms, address: &Address) -> Vec<String> {
        let is_new = |parameter: &Parameter| {
            let form = forms.get(*parameter);
            self.0[*parameter as usize].fetch_max(form, Ordering::Relaxed) < form
        };
        let new = ALL.into_iter().filter(is_new);
        new.map(|parameter| forms.departure(parameter, address)).collect()
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

    fn complaint(status: u16, message: &str) -> Complaint {
        Complaint::read(status, message.as_bytes())
    }

    #[test]
    fn a_schema_gives_way_step_by_step_until_it_is_gone() {
        let refusal = complaint(400, "this response_format is unavailable");
        let mut forms = Forms::default();
        for step in 1..4 {
            assert!(forms.constrain(&request()));
            forms = forms.without_blamed(&refusal, &request()).unwrap();
            assert_eq!(forms.get(Parameter::Schema), step);
        }
        assert!(!forms.constrain(&request()));
        assert_eq!(forms.without_blamed(&refusal, &request()), None);
    }

    #[test]
    fn only_what_was_sent_is_blamed() {
        let regex = complaint(400, "no regex here");
        assert_eq!(Forms::default().without_blamed(&regex, &request()), None);
        let thinking = complaint(400, "unknown chat_template_kwargs");
        assert_eq!(Forms::default().without_blamed(&thinking, &request()), None);
        let other = complaint(400, "the prompt is too long");
        assert_eq!(Forms::default().without_blamed(&other, &request()), None);
    }

    #[test]
    fn a_crash_is_blamed_on_unmistakable_words_alone() {
        let crash = |message| Forms::default().without_blamed(&complaint(500, message), &request());
        assert!(crash("('body', 'response_format', 'type')").is_some());
        assert_eq!(crash("could not seed the database schema"), None);
        assert_eq!(
            Forms::default().without_blamed(&complaint(503, "response_format"), &request()),
            None
        );
    }

    #[test]
    fn what_is_learnt_is_said_once_and_never_unlearnt() {
        let address = Address::parse("openai:m@http://box").unwrap();
        let known = Known::default();
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
