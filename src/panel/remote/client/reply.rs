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
    /// Whether a count of its usage is more than can be, and left out.
    pub is_miscounted: bool,
    pub answered_by: Option<AnsweredBy>,
}

/// Why a response is no completion.
#[derive(Debug, PartialEq)]
pub enum ReplyError {
    /// It is not JSON, lacks a field or broke off; worth another attempt.
    Malformed(String),
    ServerError(ServerError),
}

/// How a completion ended, by the names that servers have for it, in lower case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// By itself: `stop`, and any name that is not known, for servers have many for a natural stop.
    Natural,
    Length,
    /// The provider's filter withheld it, or the rest of it.
    Filtered,
    /// The server broke off.
    Broken,
}

impl End {
    fn of(finish_reason: Option<&str>) -> End {
        match finish_reason.unwrap_or_default().to_lowercase().as_str() {
            "length" | "max_tokens" | "model_length" | "model_context_window_exceeded" => {
                End::Length
            }
            "content_filter" | "refusal" | "safety" | "recitation" | "prohibited_content"
            | "blocklist" | "spii" | "sensitive" => End::Filtered,
            "abort"
            | "aborted"
            | "cancelled"
            | "error"
            | "timeout"
            | "network_error"
            | "insufficient_system_resource"
            | "malformed_function_call" => End::Broken,
            _ => End::Natural,
        }
    }
}

/// Reads the first choice. Reasoning that the server returns in a field of its own is no part of the text. What the model or its
/// provider's filter refused is a refusal; what holds no reply at all is an error, never an empty reply.
pub fn read(answer: &Value) -> Result<Reply, ReplyError> {
    let malformed = |reason: &str| ReplyError::Malformed(reason.to_owned());
    if let Some(error) = ServerError::within(answer) {
        return Err(ReplyError::ServerError(error));
    }
    let choice = answer
        .get("choices")
        .and_then(Value::as_array)
        .ok_or_else(|| malformed("the answer has no choices"))?
        .first()
        .ok_or_else(|| malformed("the answer's choices are empty"))?;
    if let Some(error) = ServerError::within(choice) {
        return Err(ReplyError::ServerError(error));
    }
    let given = choice.get("finish_reason").and_then(Value::as_str);
    let end = End::of(given);
    if end == End::Broken {
        let reason = given.unwrap_or_default();
        return Err(malformed(&format!("the answer's finish_reason is {reason}")));
    }
    // Some providers send no message with what they withheld.
    let message = match choice.get("message") {
        Some(message) if message.is_object() => message,
        _ if end == End::Filtered => &Value::Null,
        _ => return Err(malformed("the answer's choice has no message")),
    };
    let content = content(message.get("content"))?;
    let refusal = refusal(message);
    let is_refused = refusal.is_some() || end == End::Filtered;
    if content.is_none() && !is_refused {
        if has_any(message, &["tool_calls", "function_call"]) {
            return Err(malformed("the answer calls a tool, and none was offered"));
        }
        if end == End::Natural && !has_any(message, &["reasoning_content", "reasoning"]) {
            return Err(malformed("the answer's message has no content"));
        }
    }
    let content = content.unwrap_or_default();
    let (usage, is_miscounted) = usage(answer);
    Ok(Reply {
        finish_reason: match end {
            _ if is_refused => FinishReason::Refusal,
            End::Length => FinishReason::Length,
            _ => FinishReason::Stop,
        },
        text: match refusal {
            Some(refusal) if content.is_empty() => refusal,
            _ => content,
        },
        usage,
        is_miscounted,
        answered_by: answered_by(answer),
    })
}

/// Whether a message has something under one of these keys.
fn has_any(message: &Value, keys: &[&str]) -> bool {
    let is_something = |value: &Value| match value {
        Value::Null => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(list) => !list.is_empty(),
        _ => true,
    };
    keys.iter().any(|key| message.get(key).is_some_and(is_something))
}

/// The words of a refusal: in a field of its own, or a part of the content.
fn refusal(message: &Value) -> Option<String> {
    let own = message.get("refusal").and_then(Value::as_str);
    let parts = message.get("content").and_then(Value::as_array).into_iter().flatten();
    let mut all = own.into_iter().chain(parts.filter_map(|part| part.get("refusal")?.as_str()));
    all.find(|refusal| !refusal.is_empty()).map(str::to_owned)
}

/// The model and fingerprint that the server reports; `None` where it reports neither.
fn answered_by(answer: &Value) -> Option<AnsweredBy> {
    let field = |name: &str| answer.get(name).and_then(Value::as_str).map(str::to_owned);
    let answered_by =
        AnsweredBy { model: field("model"), fingerprint: field("system_fingerprint") };
    (answered_by.model.is_some() || answered_by.fingerprint.is_some()).then_some(answered_by)
}

/// The text of a message: a string, or a list of parts, of which those of type `text` are joined. `None` where it has none.
fn content(content: Option<&Value>) -> Result<Option<String>, ReplyError> {
    match content {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(Value::Array(parts)) => {
            let is_text = |part: &&Value| part.get("type").and_then(Value::as_str) == Some("text");
            let mut texts = parts.iter().filter(is_text).peekable();
            let has_texts = texts.peek().is_some();
            let text = texts.filter_map(|part| part.get("text")?.as_str()).collect();
            Ok(Some(text).filter(|_| has_texts))
        }
        Some(_) => Err(ReplyError::Malformed("the answer's content is no text".to_owned())),
    }
}

/// The tokens that it counts, and whether some of these are more than can be.
fn usage(answer: &Value) -> (Usage, bool) {
    let mut is_miscounted = false;
    let mut count = |path: &str| match answer.pointer(path).filter(|number| number.is_number()) {
        None => 0,
        Some(number) => {
            let count = number.as_u64().and_then(|number| u32::try_from(number).ok());
            is_miscounted |= count.is_none();
            count.unwrap_or_default() as usize
        }
    };
    let usage = Usage {
        prompt_tokens: count("/usage/prompt_tokens"),
        cached_tokens: count("/usage/prompt_tokens_details/cached_tokens"),
        completion_tokens: count("/usage/completion_tokens"),
        forced_tokens: 0,
    };
    (usage, is_miscounted)
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
            is_miscounted: false,
            answered_by: Some(AnsweredBy {
                model: Some("m-2025".to_owned()),
                fingerprint: Some("fp_1".to_owned()),
            }),
        };
        assert_eq!(read(&answer).unwrap(), expected);
    }

    #[test]
    fn counts_that_cannot_be_are_none_and_said() {
        for count in [json!(1_u64 << 63), json!(u64::from(u32::MAX) + 1), json!(-1), json!(1e30)] {
            let mut answer = with(json!({"content": "B"}), json!("stop"));
            answer["usage"] = json!({"prompt_tokens": count, "completion_tokens": 5});
            let reply = read(&answer).unwrap();
            let counts = (reply.usage.prompt_tokens, reply.usage.completion_tokens);
            assert_eq!((counts, reply.is_miscounted), ((0, 5), true), "{count}");
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
            assert!(matches!(end(json!(reason)), Err(ReplyError::Malformed(_))), "{reason}");
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
                Err(ReplyError::Malformed(reason)) => assert!(reason.contains(said), "{reason}"),
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
        let choice = json!({"error": {"code": 429, "message": "slow"}, "finish_reason": "error"});
        let within = super::read(&json!({"choices": [choice]}));
        assert!(matches!(within, Err(ReplyError::ServerError(error)) if error.status == 429));
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
