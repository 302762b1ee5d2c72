//! Reads the JSON of a chat completion: text, finish reason, token usage.

use serde::Deserialize;
use serde_json::Value;

use super::failure::{Failure, ServerError};
use super::transport::Answer;
use crate::record::{AnsweredBy, FinishReason, Usage};

/// A completion as the server gives it.
#[derive(Debug, PartialEq)]
pub struct Reply {
    pub text: String,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    pub answered_by: Option<AnsweredBy>,
    /// Why the model was not asked, where a filter withheld the prompt.
    pub withheld: Option<ServerError>,
}

#[derive(Deserialize)]
struct Body {
    /// Some servers send one with a success status.
    error: Option<Value>,
    choices: Option<Vec<Choice>>,
    #[serde(default)]
    usage: Value,
    model: Option<String>,
    system_fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct Choice {
    error: Option<Value>,
    finish_reason: Option<String>,
    message: Option<Message>,
}

#[derive(Default, Deserialize)]
struct Message {
    content: Option<Content>,
    refusal: Option<String>,
    tool_calls: Option<Vec<Value>>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "the answer's content is no text")]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Part {
    Text {
        text: String,
    },
    Refusal {
        refusal: String,
    },
    #[serde(other)]
    Other,
}

/// How a completion ended, by the names that servers have for it; any that is not known is a natural stop, which has many. `None`: the
/// server broke off.
fn end_of(finish_reason: &str) -> Option<FinishReason> {
    match finish_reason.to_lowercase().as_str() {
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
            Some(FinishReason::Length)
        }
        // The provider's filter withheld it, or the rest of it.
        "content_filter" | "refusal" | "safety" | "recitation" | "prohibited_content"
        | "blocklist" | "spii" | "sensitive" => Some(FinishReason::Refusal),
        "abort"
        | "aborted"
        | "cancelled"
        | "error"
        | "timeout"
        | "network_error"
        | "insufficient_system_resource"
        | "malformed_function_call" => None,
        _ => Some(FinishReason::Stop),
    }
}

/// Reads the first choice. Reasoning that the server returns in a field of its own is no part of the text. What the model or its
/// provider's filter refused is a refusal; what holds no reply at all is an error, never an empty reply.
pub fn read(answer: &Answer) -> Result<Reply, Failure> {
    match answer.json().and_then(of) {
        Err(Failure::Refused(error)) if error.is_filter() => Ok(Reply {
            text: String::new(),
            finish_reason: FinishReason::Refusal,
            usage: Usage::default(),
            answered_by: None,
            withheld: Some(error),
        }),
        read => read,
    }
}

fn of(body: Body) -> Result<Reply, Failure> {
    let lost = |reason: &str| Failure::Lost(reason.to_owned());
    let mut choice = body.choices.into_iter().flatten().next();
    let error = body.error.or_else(|| choice.as_mut()?.error.take());
    if let Some(error) = error {
        return Err(Failure::Refused(ServerError::within(&error)));
    }
    let choice = choice.ok_or_else(|| lost("the answer has no choices"))?;
    let given = choice.finish_reason.unwrap_or_default();
    let end =
        end_of(&given).ok_or_else(|| lost(&format!("the answer's finish_reason is {given}")))?;
    let message = match choice.message {
        Some(message) => message,
        // Some providers send no message with what they withheld.
        None if end == FinishReason::Refusal => Message::default(),
        None => return Err(lost("the answer's choice has no message")),
    };
    let is_some = |text: &String| !text.is_empty();
    let has_reasoning =
        message.reasoning_content.or(message.reasoning).is_some_and(|text| is_some(&text));
    let (content, refused) = message.content.map(Content::texts).unwrap_or_default();
    let refusal = message.refusal.or(refused).filter(is_some);
    let finish_reason = if refusal.is_some() { FinishReason::Refusal } else { end };
    if content.is_none() && finish_reason != FinishReason::Refusal {
        if message.tool_calls.is_some_and(|calls| !calls.is_empty()) {
            return Err(lost("the answer calls a tool, and none was offered"));
        }
        if finish_reason == FinishReason::Stop && !has_reasoning {
            return Err(lost("the answer's message has no content"));
        }
    }
    let answered_by = AnsweredBy { model: body.model, fingerprint: body.system_fingerprint };
    let is_known = answered_by.model.is_some() || answered_by.fingerprint.is_some();
    Ok(Reply {
        text: content.filter(is_some).or(refusal).unwrap_or_default(),
        finish_reason,
        usage: usage(&body.usage),
        answered_by: Some(answered_by).filter(|_| is_known),
        withheld: None,
    })
}

impl Content {
    /// The text, `None` where it has none, and the words of a refusal.
    fn texts(self) -> (Option<String>, Option<String>) {
        let parts = match self {
            Content::Text(text) => return (Some(text), None),
            Content::Parts(parts) => parts,
        };
        let (mut text, mut refused): (Option<String>, Option<String>) = (None, None);
        for part in parts {
            match part {
                Part::Text { text: part } => *text.get_or_insert_default() += &part,
                Part::Refusal { refusal } => refused = refused.or(Some(refusal)),
                Part::Other => {}
            }
        }
        (text, refused)
    }
}

/// The tokens that it counts; a count of more than can be is none.
fn usage(counted: &Value) -> Usage {
    let count = |path: &str| {
        let number = counted.pointer(path).and_then(Value::as_u64);
        number.and_then(|number| u32::try_from(number).ok()).unwrap_or_default() as usize
    };
    Usage {
        prompt_tokens: count("/prompt_tokens"),
        cached_tokens: count("/prompt_tokens_details/cached_tokens"),
        completion_tokens: count("/completion_tokens"),
        forced_tokens: 0,
    }
}

/// Whether the response of `/models` lists `model`; `None` where it is no such list.
pub fn lists_model(list: &Value, model: &str) -> Option<bool> {
    let models = list.get("data")?.as_array()?;
    Some(models.iter().any(|entry| entry.get("id").and_then(Value::as_str) == Some(model)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: &Value) -> Result<Reply, Failure> {
        let body = answer.to_string().into_bytes();
        super::read(&Answer { status: 200, retry_after: None, body })
    }

    fn with(message: Value, finish_reason: Value) -> Value {
        json!({"choices": [{"message": message, "finish_reason": finish_reason}]})
    }

    fn text(message: Value) -> String {
        read(&with(message, json!("stop"))).unwrap().text
    }

    #[test]
    fn all_that_is_given_is_read() {
        let answer = json!({
            "model": "m-2025",
            "system_fingerprint": "fp_1",
            "choices": [
                {"message": {"role": "assistant", "content": "B"}, "finish_reason": "length"},
                {"message": {"role": "assistant", "content": "C"}, "finish_reason": "stop"},
            ],
            "usage": {
                "prompt_tokens": 30,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 16},
            },
        });
        let expected = Reply {
            text: "B".to_owned(),
            finish_reason: FinishReason::Length,
            usage: Usage {
                prompt_tokens: 30,
                cached_tokens: 16,
                completion_tokens: 5,
                forced_tokens: 0,
            },
            answered_by: Some(AnsweredBy {
                model: Some("m-2025".to_owned()),
                fingerprint: Some("fp_1".to_owned()),
            }),
            withheld: None,
        };
        assert_eq!(read(&answer).unwrap(), expected);
    }

    #[test]
    fn counts_that_cannot_be_are_none() {
        for count in [json!(1_u64 << 63), json!(u64::from(u32::MAX) + 1), json!(-1), json!(1e30)] {
            let mut answer = with(json!({"content": "B"}), json!("stop"));
            answer["usage"] = json!({"prompt_tokens": count, "completion_tokens": 5});
            let reply = read(&answer).unwrap();
            let counts = (reply.usage.prompt_tokens, reply.usage.completion_tokens);
            assert_eq!(counts, (0, 5), "{count}");
        }
    }

    #[test]
    fn reasoning_is_no_part_of_the_text() {
        let apart = json!({"content": "B", "reasoning_content": "hm", "reasoning": "hm"});
        assert_eq!(text(apart), "B");
        let parts = json!({"content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]},
            {"type": "text", "text": "B"},
            {"type": "text", "text": "!"},
        ]});
        assert_eq!(text(parts), "B!");
        assert_eq!(text(json!({"content": null, "reasoning_content": "hm"})), "");
    }

    #[test]
    fn a_refusals_words_are_its_text() {
        let part = json!({"content": [{"type": "refusal", "refusal": "I cannot."}]});
        for message in [json!({"content": null, "refusal": "I cannot."}), part] {
            let refused = read(&with(message, json!("stop"))).unwrap();
            assert_eq!(refused.finish_reason, FinishReason::Refusal);
            assert_eq!(refused.text, "I cannot.");
        }
        let answered = with(json!({"content": "B", "refusal": null}), json!("stop"));
        assert_eq!(read(&answered).unwrap().finish_reason, FinishReason::Stop);
    }

    #[test]
    fn what_a_filter_withheld_is_a_refusal() {
        for reason in ["content_filter", "SAFETY", "refusal"] {
            for (message, text) in [(json!({"content": "The ans"}), "The ans"), (Value::Null, "")] {
                let withheld = read(&with(message, json!(reason))).unwrap();
                let expected = (FinishReason::Refusal, text);
                assert_eq!((withheld.finish_reason, withheld.text.as_str()), expected, "{reason}");
            }
        }
    }

    #[test]
    fn reasons_to_end_are_stop_or_length_or_no_answer() {
        let end = |reason: Value| read(&with(json!({"content": "B"}), reason));
        for reason in [json!("stop"), json!("eos"), json!("tool_calls"), Value::Null] {
            assert_eq!(end(reason).unwrap().finish_reason, FinishReason::Stop);
        }
        for reason in ["length", "MAX_TOKENS", "model_length"] {
            assert_eq!(end(json!(reason)).unwrap().finish_reason, FinishReason::Length);
        }
        for reason in ["abort", "error", "network_error", "insufficient_system_resource"] {
            assert!(matches!(end(json!(reason)), Err(Failure::Lost(_))), "{reason}");
        }
    }

    #[test]
    fn a_message_without_content_is_no_empty_reply() {
        let calls = json!([{"function": {"name": "f"}}]);
        for (message, said) in [
            (json!({"content": null}), "no content"),
            (json!({"role": "assistant"}), "no content"),
            (json!({"content": []}), "no content"),
            (json!({"content": null, "tool_calls": calls}), "calls a tool"),
        ] {
            match read(&with(message, json!("stop"))) {
                Err(Failure::Lost(reason)) => assert!(reason.contains(said), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
        // All of its tokens went into reasoning.
        let cut = read(&with(json!({"content": null}), json!("length"))).unwrap();
        assert_eq!((cut.text.as_str(), cut.finish_reason), ("", FinishReason::Length));
    }

    #[test]
    fn what_is_no_completion_is_said() {
        for (answer, said) in [
            (json!([]), "cannot be read"),
            (json!({"choices": {}}), "cannot be read"),
            (json!({"choices": []}), "no choices"),
            (json!({"choices": [{"text": "B"}]}), "no message"),
            (with(json!({"content": 7}), json!("stop")), "no text"),
        ] {
            match read(&answer) {
                Err(Failure::Lost(reason)) => assert!(reason.contains(said), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_error_within_a_success_is_an_error() {
        let error_of = |error: Value| match read(&json!({"error": error})) {
            Err(Failure::Refused(error)) => (error.status, error.message),
            other => panic!("{other:?}"),
        };
        let overloaded = json!({"code": 502, "message": "overloaded"});
        assert_eq!(error_of(overloaded), (502, "overloaded".to_owned()));
        assert_eq!(error_of(json!("odd")), (500, "odd".to_owned()));
        let choice = json!({"error": {"code": 429, "message": "slow"}, "finish_reason": "error"});
        let within = read(&json!({"choices": [choice]}));
        assert!(matches!(within, Err(Failure::Refused(error)) if error.status == 429));
    }

    #[test]
    fn a_list_of_models_tells_whether_the_model_is_there() {
        let list = json!({"data": [{"id": "a"}, {"id": "b"}]});
        let of = |model| lists_model(&list, model);
        assert_eq!(of("b"), Some(true));
        assert_eq!(of("a"), Some(true));
        assert_eq!(of("c"), Some(false));
        assert_eq!(lists_model(&json!({"models": []}), "a"), None);
    }
}
