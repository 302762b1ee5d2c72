//! Reads the JSON of a chat completion: text, finish reason, token usage.

use serde_json::Value;

use super::server_error::ServerError;
use crate::record::{AnsweredBy, FinishReason, Usage};

/// A completion as the server gives it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub text: String,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    pub answered_by: Option<AnsweredBy>,
}

/// Why a response is no completion.
#[derive(Debug, PartialEq)]
pub enum ReplyError {
    /// It is not JSON or lacks a field; worth another attempt.
    Malformed(String),
    /// The provider's content filter withheld it.
    Filtered(String),
    ServerError(ServerError),
}

/// Reads the first choice. Reasoning that the server returns in a field of its own is no part of the text.
pub fn read(answer: &Value) -> Result<Reply, ReplyError> {
    if let Some(error) = ServerError::within(answer) {
        return Err(ReplyError::ServerError(error));
    }
    let malformed = |reason: &str| ReplyError::Malformed(reason.to_owned());
    let choice = answer
        .get("choices")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed("the answer has no choices"))?
        .first()
        .ok_or_else(|| malformed("the answer's choices are empty"))?;
    let message = choice
        .get("message")
        .filter(|message| message.is_object())
        .ok_or_else(|| malformed("the answer's choice has no message"))?;
    let finish_reason = match choice.get("finish_reason").and_then(Value::as_str) {
        Some("content_filter") => {
            let message = "its finish_reason is content_filter".to_owned();
            return Err(ReplyError::Filtered(message));
        }
        Some(reason @ ("abort" | "error")) => {
            return Err(malformed(&format!("the answer's finish_reason is {reason}")));
        }
        Some("length" | "max_tokens") => FinishReason::Length,
        // Servers have more names for a natural stop.
        _ => FinishReason::Stop,
    };
    let content = content(message.get("content"))?;
    let refusal = message.get("refusal").and_then(Value::as_str);
    let refusal = refusal.filter(|refusal| !refusal.is_empty());
    Ok(Reply {
        text: match refusal {
            Some(refusal) if content.is_empty() => refusal.to_owned(),
            _ => content,
        },
        finish_reason: match refusal {
            Some(_) => FinishReason::Refusal,
            None => finish_reason,
        },
        usage: usage(answer),
        answered_by: answered_by(answer),
    })
}

/// The model and fingerprint that the server reports; `None` where it reports neither.
fn answered_by(answer: &Value) -> Option<AnsweredBy> {
    let field = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let answered_by =
        AnsweredBy { model: field("model"), fingerprint: field("system_fingerprint") };
    (answered_by.model.is_some() || answered_by.fingerprint.is_some()).then_some(answered_by)
}

/// The text of a message: a string, `null`, or a list of parts, of which those of type `text` are joined.
fn content(content: Option<&Value>) -> Result<String, ReplyError> {
    match content {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) => Ok(text.clone()),
        Some(Value::Array(parts)) => Ok(parts
            .iter()
            .filter(|part| part.get("type").and_then(Value::as_str) == Some("text"))
            .filter_map(|part| part.get("text")?.as_str())
            .collect()),
        Some(_) => Err(ReplyError::Malformed("the answer's content is no text".to_owned())),
    }
}

fn usage(answer: &Value) -> Usage {
    let count = |path: &str| {
        let number = answer.pointer(path).and_then(Value::as_u64);
        number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
    };
    Usage {
        prompt_tokens: count("/usage/prompt_tokens"),
        cached_tokens: count("/usage/prompt_tokens_details/cached_tokens"),
        completion_tokens: count("/usage/completion_tokens"),
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
        };
        assert_eq!(read(&answer).unwrap(), expected);
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
        let refused = read(&with(json!({"content": null, "refusal": "I cannot."}), json!("stop")));
        let refused = refused.unwrap();
        assert_eq!(refused.finish_reason, FinishReason::Refusal);
        assert_eq!(refused.text, "I cannot.");
        let answered = with(json!({"content": "B", "refusal": null}), json!("stop"));
        assert_eq!(read(&answered).unwrap().finish_reason, FinishReason::Stop);
    }

    #[test]
    fn reasons_to_end_are_stop_or_length_or_no_answer() {
        let end = |reason: Value| read(&with(json!({"content": "B"}), reason));
        for reason in [json!("stop"), json!("eos"), json!("tool_calls"), Value::Null] {
            assert_eq!(end(reason).unwrap().finish_reason, FinishReason::Stop);
        }
        assert_eq!(end(json!("length")).unwrap().finish_reason, FinishReason::Length);
        assert!(matches!(end(json!("content_filter")), Err(ReplyError::Filtered(_))));
        assert!(matches!(end(json!("abort")), Err(ReplyError::Malformed(_))));
    }

    #[test]
    fn what_is_no_completion_is_said() {
        for (answer, said) in [
            (json!([]), "no choices"),
            (json!({"choices": {}}), "no choices"),
            (json!({"choices": []}), "empty"),
            (json!({"choices": [{"text": "B"}]}), "no message"),
            (with(json!({"content": 7}), json!("stop")), "no text"),
        ] {
            match read(&answer) {
                Err(ReplyError::Malformed(reason)) => assert!(reason.contains(said), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_error_within_a_success_is_an_error() {
        let read = |error: Value| match read(&json!({"error": error})) {
            Err(ReplyError::ServerError(error)) => (error.status, error.message),
            other => panic!("{other:?}"),
        };
        let overloaded = json!({"code": 502, "message": "overloaded"});
        assert_eq!(read(overloaded), (502, "overloaded".to_owned()));
        assert_eq!(read(json!("odd")), (500, "odd".to_owned()));
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
