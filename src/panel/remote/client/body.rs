//! The body of a request to OpenAI's chat completions API, with vLLM's extensions for what that API lacks.
//!
//! What not every server takes has several forms: when a server rejects one, the same request is sent with the next. A form is remembered only
//! when a request with it succeeds: a rejection may have had another cause than its message suggests.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, Ordering};

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::{Address, RemoteRequest};
use super::failure::ServerError;
use crate::panel::SamplingChoice;
use crate::record::Grammar;

/// A keyword of our schemas that only llguidance knows.
const LLGUIDANCE_KEYWORD: &str = "x-guidance";

/// A parameter that not every server takes.
struct Parameter {
    /// In a server's error message.
    names: &'static [&'static str],
    is_in: fn(&RemoteRequest) -> bool,
    /// As notes describe them, with the fields of the body that each is, the preferred one first.
    forms: &'static [Form],
}

type Form = (&'static str, fn(&RemoteRequest) -> Value);

const SEED: usize = 0;
const GRAMMARS: Range<usize> = 1..4;
const THINKING: usize = 5;

static PARAMETERS: [Parameter; 6] = [
    Parameter {
        names: &["seed"],
        is_in: |request| !request.omit_seed,
        forms: &[
            // Some servers read it as a signed 32-bit integer.
            ("`seed`", |request| json!({"seed": request.seed & 0x7fff_ffff})),
            ("no seed", nothing),
        ],
    },
    Parameter {
        names: &["response_format", "json_schema", "schema", "grammar"],
        is_in: |request| matches!(request.grammar, Some(Grammar::JsonSchema(_))),
        forms: &[
            ("a strict `json_schema` as `response_format`", |request| {
                let schema = json!({"name": "record", "strict": true, "schema": schema(request)});
                json!({"response_format": {"type": "json_schema", "json_schema": schema}})
            }),
            ("a `json_schema` that is not strict", |request| {
                let schema = json!({"name": "record", "schema": schema(request)});
                json!({"response_format": {"type": "json_schema", "json_schema": schema}})
            }),
            (
                "a `json_object` with its schema",
                |request| json!({"response_format": {"type": "json_object", "schema": schema(request)}}),
            ),
            ("no schema, so that its text is unconstrained", nothing),
        ],
    },
    Parameter {
        names: &["response_format", "json_object"],
        is_in: |request| request.grammar == Some(Grammar::JsonObject),
        forms: &[
            (
                "a `json_object` as `response_format`",
                |_| json!({"response_format": {"type": "json_object"}}),
            ),
            ("nothing, so that its text is unconstrained", nothing),
        ],
    },
    Parameter {
        names: &["structured_outputs", "grammar", "regex"],
        is_in: |request| matches!(request.grammar, Some(Grammar::Regex(_) | Grammar::Lark(_))),
        forms: &[
            ("`structured_outputs`", |request| match &request.grammar {
                Some(Grammar::Regex(regex)) => json!({"structured_outputs": {"regex": regex}}),
                Some(Grammar::Lark(lark)) => json!({"structured_outputs": {"grammar": lark}}),
                _ => json!({}),
            }),
            ("no grammar, so that its text is unconstrained", nothing),
        ],
    },
    Parameter {
        names: &["max_tokens"],
        is_in: |request| request.max_tokens.is_some(),
        forms: &[
            ("`max_tokens`", |request| json!({"max_tokens": request.max_tokens})),
            (
                "`max_completion_tokens`",
                |request| json!({"max_completion_tokens": request.max_tokens}),
            ),
        ],
    },
    Parameter {
        names: &["chat_template_kwargs", "enable_thinking"],
        is_in: |request| request.thinking.is_some(),
        forms: &[
            (
                "`chat_template_kwargs`",
                |request| json!({"chat_template_kwargs": {"enable_thinking": request.thinking}}),
            ),
            ("nothing about thinking", nothing),
        ],
    },
];

fn nothing(_: &RemoteRequest) -> Value {
    json!({})
}

/// The request's schema, which serde_json has written.
fn schema(request: &RemoteRequest) -> Value {
    let Some(Grammar::JsonSchema(text)) = &request.grammar else { return Value::Null };
    let mut schema: Value = serde_json::from_str(text).unwrap_or_default();
    if let Value::Object(fields) = &mut schema {
        fields.shift_remove(LLGUIDANCE_KEYWORD);
    }
    schema
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    n: u8,
    #[serde(flatten)]
    sampling: SamplingChoice,
    #[serde(flatten)]
    parameters: Map<String, Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'a str,
    /// A text, or parts.
    content: Value,
}

/// Of each parameter, which of its forms it is sent in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms([u8; PARAMETERS.len()]);

impl Forms {
    /// Writes the body; `image` goes before the text of the last user message.
    pub fn write(self, model: &str, request: &RemoteRequest, image: Option<&str>) -> Vec<u8> {
        let last_user = request.messages.iter().rposition(|message| message.role == "user");
        let turns = request.messages.iter().enumerate().map(|(index, message)| Turn {
            role: &message.role,
            content: match image.filter(|_| Some(index) == last_user) {
                None => json!(message.content),
                Some(image) => json!([
                    {"type": "image_url", "image_url": {"url": image}},
                    {"type": "text", "text": message.content},
                ]),
            },
        });
        let sent = self.sent(request).filter_map(|(_, fields)| fields.as_object().cloned());
        let body = Body {
            model,
            messages: turns.collect(),
            n: 1,
            sampling: SamplingChoice { seed: None, ..request.sampling },
            parameters: sent.flatten().collect(),
        };
        // Texts and numbers, which are always written.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The parameters of a request, with the fields that they are sent as.
    fn sent(self, request: &RemoteRequest) -> impl Iterator<Item = (usize, Value)> {
        let all = PARAMETERS.iter().enumerate().filter(|(_, parameter)| (parameter.is_in)(request));
        all.map(move |(index, parameter)| {
            let (_, fields) = parameter.forms[usize::from(self.0[index])];
            (index, fields(request))
        })
    }

    /// The forms to try after `error`: the first parameter of `request` that it names, in its next form.
    pub fn after_rejection(
        mut self,
        error: &ServerError,
        request: &RemoteRequest,
    ) -> Option<Forms> {
        let rejected = PARAMETERS.iter().enumerate().position(|(index, parameter)| {
            let has_next = usize::from(self.0[index]) + 1 < parameter.forms.len();
            has_next && (parameter.is_in)(request) && parameter.is_rejected_by(error)
        })?;
        self.0[rejected] += 1;
        Some(self)
    }

    /// What a call has and `request` is not sent with in these forms.
    pub fn not_sent(self, request: &RemoteRequest) -> Vec<String> {
        let mut named = vec![(SEED, "seed"), (THINKING, "enable_thinking")];
        named.retain(|(index, _)| !(PARAMETERS[*index].is_in)(request) || self.0[*index] > 0);
        named.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether `request` is sent with a grammar in these forms.
    pub fn constrain(self, request: &RemoteRequest) -> bool {
        self.sent(request)
            .any(|(index, fields)| GRAMMARS.contains(&index) && fields != nothing(request))
    }
}

impl Parameter {
    /// Whether an error may be about this parameter.
    fn is_rejected_by(&self, error: &ServerError) -> bool {
        let is_named = |name: &&str| error.names_parameter(name);
        match error.status {
            400 | 422 => self.names.iter().any(is_named),
            // A validator that crashed: only names that no other error contains count.
            500 | 501 => self.names.iter().filter(|name| name.contains('_')).any(is_named),
            _ => false,
        }
    }
}

/// The forms that one endpoint was found to accept.
#[derive(Debug, Default)]
pub struct LearnedForms([AtomicU8; PARAMETERS.len()]);

impl LearnedForms {
    pub fn forms(&self) -> Forms {
        Forms(std::array::from_fn(|index| self.0[index].load(Ordering::Relaxed)))
    }

    /// Remembers forms that worked; returns a note for the user on each that is new.
    pub fn learn(&self, forms: Forms, address: &Address) -> Vec<String> {
        let note = |(index, parameter): (usize, &Parameter)| {
            let form = forms.0[index];
            let is_new = self.0[index].fetch_max(form, Ordering::Relaxed) < form;
            let (preferred, sent) = (parameter.forms[0].0, parameter.forms[usize::from(form)].0);
            is_new.then(|| format!("{address} does not support {preferred}; sending {sent}"))
        };
        PARAMETERS.iter().enumerate().filter_map(note).collect()
    }
}

#[cfg(test)]
mod tests;
