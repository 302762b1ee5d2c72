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
mod tests {
    use super::*;
    use crate::record::Message;

    fn message(role: &str, content: &str) -> Message {
        Message::new(role, content)
    }

    fn request() -> RemoteRequest {
        RemoteRequest {
            messages: vec![message("system", "You are a doctor."), message("user", "Which?")],
            seed: 1 << 40 | 7,
            ..RemoteRequest::default()
        }
    }

    fn written(request: &RemoteRequest, forms: Forms) -> Value {
        serde_json::from_slice(&forms.write("m", request, None)).unwrap()
    }

    /// The forms after each of `refusals` was heard.
    fn after(request: &RemoteRequest, refusals: &[&str]) -> Forms {
        refusals.iter().fold(Forms::default(), |forms, refusal| {
            let error = ServerError::read(400, refusal.as_bytes());
            forms.after_rejection(&error, request).unwrap()
        })
    }

    #[test]
    fn what_is_not_asked_for_is_not_sent() {
        assert_eq!(
            written(&request(), Forms::default()),
            json!({
                "model": "m",
                "messages": [
                    {"role": "system", "content": "You are a doctor."},
                    {"role": "user", "content": "Which?"},
                ],
                "n": 1,
                "seed": 7,
            })
        );
    }

    #[test]
    fn what_is_left_to_the_provider_is_not_sent() {
        let request = RemoteRequest { omit_seed: true, ..request() };
        let body = written(&request, Forms::default());
        let keys: Vec<&str> = body.as_object().unwrap().keys().map(String::as_str).collect();
        assert_eq!(keys, ["model", "messages", "n"]);
    }

    #[test]
    fn limits_and_thinking_are_sent_where_they_are_set() {
        let request = RemoteRequest { max_tokens: Some(512), thinking: Some(false), ..request() };
        let text = String::from_utf8(Forms::default().write("m", &request, None)).unwrap();
        for part in [r#""max_tokens":512,"#, r#""chat_template_kwargs":{"enable_thinking":false}"#]
        {
            assert!(text.contains(part), "{text}");
        }
        let forms = after(&request, &["max_tokens", "chat_template_kwargs", "seed"]);
        let body = written(&request, forms);
        assert_eq!(body["max_completion_tokens"], 512);
        for gone in ["max_tokens", "chat_template_kwargs", "seed"] {
            assert_eq!(body.get(gone), None);
        }
    }

    #[test]
    fn sampling_is_sent_as_it_was_set_and_nothing_else_of_it() {
        let sampling = SamplingChoice {
            temperature: Some(0.2),
            top_p: Some(1.0),
            seed: Some(9),
            ..SamplingChoice::default()
        };
        let request = RemoteRequest { sampling, ..request() };
        let text = String::from_utf8(Forms::default().write("m", &request, None)).unwrap();
        assert!(text.contains(r#""n":1,"temperature":0.2,"top_p":1.0,"seed":7"#), "{text}");
        assert!(!text.contains("top_k") && !text.contains("min_p"), "{text}");
        let sampling = SamplingChoice { top_k: Some(0), min_p: Some(0.05), ..request.sampling };
        let body = written(&RemoteRequest { sampling, ..request }, Forms::default());
        assert_eq!((body["top_k"].as_u64(), body["min_p"].as_f64()), (Some(0), Some(0.05)));
    }

    #[test]
    fn an_image_stands_before_the_last_users_text() {
        let body = Forms::default().write("m", &request(), Some("data:x"));
        let body: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(body["messages"][0]["content"], "You are a doctor.");
        assert_eq!(
            body["messages"][1]["content"],
            json!([
                {"type": "image_url", "image_url": {"url": "data:x"}},
                {"type": "text", "text": "Which?"},
            ])
        );
    }

    #[test]
    fn a_schema_is_sent_in_the_form_that_the_server_takes_without_our_own_keyword() {
        let request = RemoteRequest {
            grammar: Some(Grammar::JsonSchema(
                r#"{"type": "object", "x-guidance": {"item_separator": ", "}}"#.to_owned(),
            )),
            ..request()
        };
        let schema = json!({"type": "object"});
        let expected = [
            json!({"type": "json_schema", "json_schema": {"name": "record", "strict": true, "schema": schema}}),
            json!({"type": "json_schema", "json_schema": {"name": "record", "schema": schema}}),
            json!({"type": "json_object", "schema": schema}),
            Value::Null,
        ];
        for (steps, format) in expected.iter().enumerate() {
            let forms = after(&request, &vec!["response_format"; steps]);
            assert_eq!(written(&request, forms)["response_format"], *format);
        }
    }

    #[test]
    fn a_regex_or_grammar_goes_the_way_of_vllm() {
        let with = |grammar| RemoteRequest { grammar: Some(grammar), ..request() };
        let regex = with(Grammar::Regex("[AB]".to_owned()));
        assert_eq!(
            written(&regex, Forms::default())["structured_outputs"],
            json!({"regex": "[AB]"})
        );
        let lark = with(Grammar::Lark("start: \"A\"".to_owned()));
        assert_eq!(
            written(&lark, Forms::default())["structured_outputs"],
            json!({"grammar": "start: \"A\""})
        );
        let body = written(&regex, after(&regex, &["structured_outputs"]));
        assert_eq!(body.get("structured_outputs"), None);
    }

    fn limited() -> RemoteRequest {
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
            assert!(forms.constrain(&limited()));
            forms = forms.after_rejection(&refusal, &limited()).unwrap();
            assert_eq!(forms.0[1], step);
        }
        assert!(!forms.constrain(&limited()));
        assert_eq!(forms.after_rejection(&refusal, &limited()), None);
    }

    #[test]
    fn what_is_left_out_is_said() {
        let thinks = RemoteRequest { thinking: Some(true), ..limited() };
        assert_eq!(Forms::default().not_sent(&thinks), [] as [&str; 0]);
        let left = RemoteRequest { omit_seed: true, ..limited() };
        assert_eq!(Forms::default().not_sent(&left), ["seed", "enable_thinking"]);
        let rejected = server_error(400, "no seed, please");
        let forms = Forms::default().after_rejection(&rejected, &thinks).unwrap();
        assert_eq!(forms.not_sent(&thinks), ["seed"]);
        assert_eq!(Forms::default().after_rejection(&rejected, &left), None);
    }

    #[test]
    fn only_what_was_sent_is_blamed() {
        let regex = server_error(400, "no regex here");
        assert_eq!(Forms::default().after_rejection(&regex, &limited()), None);
        let thinking = server_error(400, "unknown chat_template_kwargs");
        assert_eq!(Forms::default().after_rejection(&thinking, &limited()), None);
        let other = server_error(400, "the prompt is too long");
        assert_eq!(Forms::default().after_rejection(&other, &limited()), None);
    }

    #[test]
    fn a_crash_is_blamed_on_unmistakable_words_alone() {
        let crash =
            |message| Forms::default().after_rejection(&server_error(500, message), &limited());
        assert!(crash("('body', 'response_format', 'type')").is_some());
        assert_eq!(crash("could not seed the database schema"), None);
        assert_eq!(
            Forms::default().after_rejection(&server_error(503, "response_format"), &limited()),
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
