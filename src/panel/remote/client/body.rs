//! The body of a request to OpenAI's chat completions API, with vLLM's extensions for what that API lacks.
//!
//! What not every server takes has several forms: when a server rejects one, the same request is sent with the next. A form is remembered only
//! when a request with it succeeds: a rejection may have had another cause than its message suggests.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::super::RemoteRequest;
use super::reply::ServerError;
use crate::panel::SamplingChoice;
use crate::record::{Grammar, Message};

/// A keyword of our schemas that only llguidance knows.
const LLGUIDANCE_KEYWORD: &str = "x-guidance";

/// A parameter that not every server takes: its names in a server's error message; and its forms as notes describe them, each with the fields
/// of the body that it is, the preferred one first. It has none where the request leaves it out.
type Parameter = (&'static [&'static str], Vec<(&'static str, Value)>);

fn parameters(request: &RemoteRequest) -> [Parameter; 6] {
    let (mut schemas, mut objects, mut languages) = (Vec::new(), Vec::new(), Vec::new());
    let unconstrained = ("no grammar, so that its text is unconstrained", json!({}));
    let formatted = |format: Value| json!({"response_format": format});
    match &request.grammar {
        None => {}
        Some(Grammar::JsonSchema(text)) => {
            let schema = portable(text);
            let named = json!({"name": "record", "schema": schema});
            let strict = json!({"name": "record", "strict": true, "schema": schema});
            let [strict, loose] = [strict, named]
                .map(|named| formatted(json!({"type": "json_schema", "json_schema": named})));
            let object = formatted(json!({"type": "json_object", "schema": schema}));
            schemas = vec![
                ("a strict `json_schema` as `response_format`", strict),
                ("a `json_schema` that is not strict", loose),
                ("a `json_object` with its schema", object),
                unconstrained,
            ];
        }
        Some(Grammar::JsonObject) => {
            let object = formatted(json!({"type": "json_object"}));
            objects = vec![("a `json_object` as `response_format`", object), unconstrained];
        }
        Some(grammar @ (Grammar::Regex(text) | Grammar::Lark(text))) => {
            let kind = if matches!(grammar, Grammar::Regex(_)) { "regex" } else { "grammar" };
            let guided = json!({"structured_outputs": {kind: text}});
            languages = vec![("`structured_outputs`", guided), unconstrained];
        }
    }
    // Some servers read a seed as a signed 32-bit integer.
    let mut seeds =
        vec![("`seed`", json!({"seed": request.seed & 0x7fff_ffff})), ("no seed", json!({}))];
    seeds.retain(|_| !request.omit_seed);
    let limits = request.max_tokens.map(|limit| {
        let limits = ["max_tokens", "max_completion_tokens"].map(|name| json!({name: limit}));
        ["`max_tokens`", "`max_completion_tokens`"].into_iter().zip(limits).collect()
    });
    let thinking = request.thinking.map(|thinks| {
        let thinks = json!({"chat_template_kwargs": {"enable_thinking": thinks}});
        vec![("`chat_template_kwargs`", thinks), ("nothing about thinking", json!({}))]
    });
    [
        (&["seed"], seeds),
        (&["response_format", "json_schema", "schema", "grammar"], schemas),
        (&["response_format", "json_object"], objects),
        (&["structured_outputs", "grammar", "regex"], languages),
        (&["max_tokens"], limits.unwrap_or_default()),
        (&["chat_template_kwargs", "enable_thinking"], thinking.unwrap_or_default()),
    ]
}

/// A schema, which serde_json has written, without our own keyword.
fn portable(schema: &str) -> Value {
    let mut schema: Value = serde_json::from_str(schema).unwrap_or_default();
    if let Value::Object(fields) = &mut schema {
        fields.shift_remove(LLGUIDANCE_KEYWORD);
    }
    schema
}

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Value>,
    n: u8,
    #[serde(flatten)]
    sampling: SamplingChoice,
    #[serde(flatten)]
    parameters: Map<String, Value>,
}

/// Of each parameter, which of its forms it is sent in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Forms([usize; 6]);

impl Forms {
    pub fn write(self, model: &str, request: &RemoteRequest) -> Vec<u8> {
        let turn = |turn: &Message| json!({"role": turn.role, "content": turn.content});
        let body = Body {
            model,
            messages: request.messages.iter().map(turn).collect(),
            n: 1,
            sampling: SamplingChoice { max_tokens: None, ..request.sampling },
            parameters: self.sent(request),
        };
        // Texts and numbers, which are always written.
        serde_json::to_vec(&body).unwrap_or_default()
    }

    /// The fields of the body that a request's parameters are sent as.
    fn sent(self, request: &RemoteRequest) -> Map<String, Value> {
        let all = parameters(request).into_iter().zip(self.0);
        let fields = all.filter_map(|((_, forms), form)| forms.get(form)?.1.as_object().cloned());
        fields.flatten().collect()
    }

    /// The forms to try after `error`: the first parameter of `request` that it names, in its next form.
    pub fn after_rejection(
        mut self,
        error: &ServerError,
        request: &RemoteRequest,
    ) -> Option<Forms> {
        let mut parameters = parameters(request).into_iter().zip(&mut self.0);
        let (_, form) = parameters.find(|((names, forms), form)| {
            **form + 1 < forms.len() && is_rejection(error, names)
        })?;
        *form += 1;
        Some(self)
    }

    /// What a call has and `request` is not sent with in these forms.
    pub fn not_sent(self, request: &RemoteRequest) -> Vec<String> {
        let sent = self.sent(request);
        let mut named = vec![("seed", "seed"), ("chat_template_kwargs", "enable_thinking")];
        named.retain(|(field, _)| !sent.contains_key(*field));
        named.into_iter().map(|(_, name)| name.to_owned()).collect()
    }

    /// Whether `request` is sent with a grammar in these forms.
    pub fn constrain(self, request: &RemoteRequest) -> bool {
        let sent = self.sent(request);
        ["response_format", "structured_outputs"].iter().any(|field| sent.contains_key(*field))
    }

    /// Remembers the forms in which `request` was answered; a note for the user on each that is new.
    pub fn learn(&mut self, answered: Forms, request: &RemoteRequest) -> Vec<String> {
        let mut notes = Vec::new();
        for (index, (_, forms)) in parameters(request).iter().enumerate() {
            let form = answered.0[index];
            if form > self.0[index] {
                self.0[index] = form;
                let (preferred, sent) = (forms[0].0, forms[form].0);
                notes.push(format!("does not support {preferred}; sending {sent}"));
            }
        }
        notes
    }
}

/// Whether an error may be about the parameter of these names.
fn is_rejection(error: &ServerError, names: &[&str]) -> bool {
    let is_named = |name: &&str| error.names_parameter(name);
    match error.status {
        400 | 422 => names.iter().any(is_named),
        // A validator that crashed: only names that no other error contains count.
        500 | 501 => names.iter().filter(|name| name.contains('_')).any(is_named),
        _ => false,
    }
}

#[cfg(test)]
mod tests;
