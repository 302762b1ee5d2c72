//! The JSON body of a request to OpenAI's chat completions API, with vLLM's extensions for what that API lacks.

use serde::Serialize;
use serde_json::{Value, json};

use super::super::{RemoteError, RemoteRequest};
use super::forms::{Forms, GRAMMAR, LENGTH, OBJECT, SCHEMA, SEED, THINKING};
use crate::panel::SamplingChoice;
use crate::record::Grammar;

/// The name that a schema must have.
const SCHEMA_NAME: &str = "record";
/// A keyword of our schemas that only llguidance knows.
const LLGUIDANCE_KEYWORD: &str = "x-guidance";

#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: Vec<Turn<'a>>,
    n: u8,
    #[serde(flatten)]
    sampling: SamplingChoice,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    structured_outputs: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    chat_template_kwargs: Option<Value>,
}

#[derive(Serialize)]
struct Turn<'a> {
    role: &'a str,
    /// A text, or parts.
    content: Value,
}

/// Writes the body; `image` goes before the text of the last user message.
pub fn write(
    model: &str,
    request: &RemoteRequest,
    image: Option<&str>,
    forms: Forms,
) -> Result<Vec<u8>, RemoteError> {
    let last_user = request.messages.iter().rposition(|message| message.role == "user");
    let turns = request.messages.iter().enumerate().map(|(index, message)| {
        let shown = image.filter(|_| Some(index) == last_user);
        Turn {
            role: &message.role,
            content: match shown {
                None => json!(message.content),
                Some(image) => json!([
                    {"type": "image_url", "image_url": {"url": image}},
                    {"type": "text", "text": message.content},
                ]),
            },
        }
    });
    let is_first = |parameter| forms.of(parameter) == 0;
    let (limit, has_old_name) = (request.max_tokens, is_first(LENGTH));
    let thinking = request.thinking.filter(|_| is_first(THINKING));
    let body = Body {
        model,
        messages: turns.collect(),
        n: 1,
        sampling: SamplingChoice { seed: None, ..request.sampling },
        max_tokens: limit.filter(|_| has_old_name),
        max_completion_tokens: limit.filter(|_| !has_old_name),
        // Some servers read it as a signed 32-bit integer.
        seed: (is_first(SEED) && !request.omit_seed).then_some((request.seed & 0x7fff_ffff) as u32),
        response_format: match &request.grammar {
            Some(Grammar::JsonObject) if is_first(OBJECT) => Some(json!({"type": "json_object"})),
            Some(Grammar::JsonSchema(schema)) => format_of(schema, forms)?,
            _ => None,
        },
        structured_outputs: match &request.grammar {
            _ if !is_first(GRAMMAR) => None,
            Some(Grammar::Regex(regex)) => Some(json!({"regex": regex})),
            Some(Grammar::Lark(lark)) => Some(json!({"grammar": lark})),
            _ => None,
        },
        chat_template_kwargs: thinking.map(|thinking| json!({"enable_thinking": thinking})),
    };
    serde_json::to_vec(&body).map_err(unsendable)
}

fn format_of(schema: &str, forms: Forms) -> Result<Option<Value>, RemoteError> {
    let mut schema: Value = serde_json::from_str(schema).map_err(unsendable)?;
    if let Value::Object(fields) = &mut schema {
        fields.shift_remove(LLGUIDANCE_KEYWORD);
    }
    let format = match forms.of(SCHEMA) {
        0 => json!({"name": SCHEMA_NAME, "strict": true, "schema": schema}),
        1 => json!({"name": SCHEMA_NAME, "schema": schema}),
        2 => return Ok(Some(json!({"type": "json_object", "schema": schema}))),
        _ => return Ok(None),
    };
    Ok(Some(json!({"type": "json_schema", "json_schema": format})))
}

fn unsendable(error: serde_json::Error) -> RemoteError {
    RemoteError::Schema { reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::super::failure::ServerError;
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
        serde_json::from_slice(&write("m", request, None, forms).unwrap()).unwrap()
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
        let text =
            String::from_utf8(write("m", &request, None, Forms::default()).unwrap()).unwrap();
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
        let text =
            String::from_utf8(write("m", &request, None, Forms::default()).unwrap()).unwrap();
        assert!(text.contains(r#""n":1,"temperature":0.2,"top_p":1.0,"seed":7"#), "{text}");
        assert!(!text.contains("top_k") && !text.contains("min_p"), "{text}");
        let sampling = SamplingChoice { top_k: Some(0), min_p: Some(0.05), ..request.sampling };
        let body = written(&RemoteRequest { sampling, ..request }, Forms::default());
        assert_eq!((body["top_k"].as_u64(), body["min_p"].as_f64()), (Some(0), Some(0.05)));
    }

    #[test]
    fn an_image_stands_before_the_last_users_text() {
        let body = write("m", &request(), Some("data:x"), Forms::default()).unwrap();
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
}
