//! Reads what an endpoint answers: the JSON of a chat completion, or an error in any of the usual shapes or as plain text.

use serde::Deserialize;
use serde_json::Value;

use super::transport::HttpAnswer;
use crate::calls::{Elsewhere, KeptCall};
use crate::record::{AnsweredBy, FinishReason, Usage};

/// Why an attempt brought no answer.
#[derive(Debug, PartialEq)]
pub enum NoAnswer {
    /// The connection failed, timed out or ended early, or what came is too long or no whole answer: worth another attempt.
    Lost(String),
    Refused(ServerError),
}

/// What a server says is wrong.
#[derive(Debug, PartialEq)]
pub struct ServerError {
    pub status: u16,
    code: Option<String>,
    /// The request parameter that it names, as `param` or in `loc`.
    parameter: Option<String>,
    /// On one line; empty where the server gives none. It may be long, and may repeat the API key.
    pub message: String,
}

impl ServerError {
    /// Reads an error's body. The shapes: OpenAI's `{"error": {message, code, param}}`, also with a bare text; the same without the outer
    /// `error`; FastAPI's `{"detail": [{loc, msg}]}`; anything else as it stands.
    pub fn read(status: u16, body: &[u8]) -> ServerError {
        let value: Value =
            serde_json::from_slice(body).unwrap_or_else(|_| String::from_utf8_lossy(body).into());
        let said = [&value["error"], &value["detail"][0], &value["detail"], &value];
        let said = said.into_iter().find(|said| !said.is_null()).unwrap_or(&value);
        let text = |name| said[name].as_str().map(str::to_owned);
        // As in ["body", "response_format", "type"].
        let place = said["loc"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let place: Vec<&str> = place.filter(|part| *part != "body").collect();
        let message = text("msg").map(|message| format!("{}: {message}", place.join(".")));
        let message = message.or(text("message")).or(said.as_str().map(str::to_owned));
        let message = message.unwrap_or_else(|| value.to_string());
        ServerError {
            status,
            code: text("code"),
            parameter: text("param").or(place.first().map(ToString::to_string)),
            message: message.replace(char::is_control, " ").trim().to_owned(),
        }
    }

    /// Whether another attempt may succeed. An exhausted quota, which comes with the status of a rate limit, is not transient.
    pub fn is_transient(&self) -> bool {
        let may_pass = matches!(self.status, 408 | 409 | 425 | 429 | 500 | 502..=599);
        may_pass && self.code.as_deref() != Some("insufficient_quota")
    }

    /// Whether the endpoint says that it lacks the model.
    pub fn is_no_model(&self) -> bool {
        self.code.as_deref() == Some("model_not_found")
    }

    /// Whether the provider's filter withheld the prompt or its answer.
    fn is_filter(&self) -> bool {
        matches!(self.code.as_deref(), Some("content_filter" | "content_policy_violation"))
    }

    /// Whether it is about the parameter of this name: the parameter that it gives, else a word of its message.
    pub fn names_parameter(&self, name: &str) -> bool {
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        let text = self.parameter.as_ref().unwrap_or(&self.message);
        text.split(|char| !is_part(char)).any(|word| word == name)
    }
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
    finish_reason: Option<String>,
    message: Option<Message>,
}

#[derive(Default, Deserialize)]
struct Message {
    content: Option<String>,
    refusal: Option<String>,
    reasoning_content: Option<String>,
    reasoning: Option<String>,
}

/// What servers call the end of a completion that reached its limit, that the provider's filter withheld or cut, and that the server broke
/// off. Any other is a natural stop, which has many names.
const LENGTH: &str = "length max_tokens model_length model_context_window_exceeded";
const FILTERED: &str =
    "content_filter refusal safety recitation prohibited_content blocklist spii sensitive";
const BROKEN: &str = "abort aborted cancelled error timeout network_error insufficient_system_resource malformed_function_call";

/// Reads the first choice. Reasoning that the server returns in a field of its own is no part of the text. What the model or its
/// provider's filter refused is a refusal; what holds no reply at all is an error, never an empty reply.
pub fn read(answer: &HttpAnswer) -> Result<KeptCall, NoAnswer> {
    match answer.json().and_then(of) {
        Err(NoAnswer::Refused(error)) if error.is_filter() => {
            Ok(KeptCall { finish_reason: FinishReason::Refusal, ..KeptCall::default() })
        }
        read => read,
    }
}

fn of(body: Body) -> Result<KeptCall, NoAnswer> {
    let lost = |reason: &str| NoAnswer::Lost(format!("the answer {reason}"));
    if let Some(error) = body.error {
        // Its `code` counts as the status where it is one.
        let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|status| (400..600).contains(status)).unwrap_or(500);
        return Err(NoAnswer::Refused(ServerError::read(status, error.to_string().as_bytes())));
    }
    let choice = body.choices.into_iter().flatten().next().ok_or_else(|| lost("has no choices"))?;
    let reason = choice.finish_reason.unwrap_or_default().to_lowercase();
    let is_one_of = |names: &str| names.split(' ').any(|name| name == reason);
    if is_one_of(BROKEN) {
        return Err(lost(&format!("ended with the finish_reason {reason}")));
    }
    let filled = |text: Option<String>| text.filter(|text| !text.is_empty());
    let is_withheld = is_one_of(FILTERED);
    // Some providers send no message with what they withheld.
    let message = choice.message.or_else(|| is_withheld.then(Message::default));
    let message = message.ok_or_else(|| lost("has a choice without a message"))?;
    let refusal = filled(message.refusal);
    let finish_reason = match () {
        () if is_withheld || refusal.is_some() => FinishReason::Refusal,
        () if is_one_of(LENGTH) => FinishReason::Length,
        () => FinishReason::Stop,
    };
    let has_reasoning = filled(message.reasoning_content).or(filled(message.reasoning)).is_some();
    if message.content.is_none() && finish_reason == FinishReason::Stop && !has_reasoning {
        return Err(lost("has a message without content"));
    }
    let by = AnsweredBy { model: body.model, fingerprint: body.system_fingerprint };
    let answered_by = Some(by).filter(|by| by.model.is_some() || by.fingerprint.is_some());
    Ok(KeptCall {
        text: filled(message.content).or(refusal).unwrap_or_default(),
        finish_reason,
        usage: usage(&body.usage),
        elsewhere: Some(Elsewhere { answered_by, ..Elsewhere::default() }),
        ..KeptCall::default()
    })
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(answer: &Value) -> Result<KeptCall, NoAnswer> {
        let body = answer.to_string().into_bytes();
        super::read(&HttpAnswer { status: 200, retry_after: None, body })
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
        let answered_by =
            AnsweredBy { model: Some("m-2025".to_owned()), fingerprint: Some("fp_1".to_owned()) };
        let usage =
            Usage { prompt_tokens: 30, cached_tokens: 16, completion_tokens: 5, forced_tokens: 0 };
        let elsewhere = Elsewhere { answered_by: Some(answered_by), ..Elsewhere::default() };
        let expected = KeptCall {
            text: "B".to_owned(),
            finish_reason: FinishReason::Length,
            usage,
            elsewhere: Some(elsewhere),
            ..KeptCall::default()
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
        assert_eq!(text(json!({"content": null, "reasoning_content": "hm"})), "");
    }

    #[test]
    fn a_refusals_words_are_its_text() {
        let refusal = json!({"content": null, "refusal": "I cannot."});
        let refused = read(&with(refusal, json!("stop"))).unwrap();
        assert_eq!(refused.finish_reason, FinishReason::Refusal);
        assert_eq!(refused.text, "I cannot.");
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
            assert!(matches!(end(json!(reason)), Err(NoAnswer::Lost(_))), "{reason}");
        }
    }

    #[test]
    fn a_message_without_content_is_no_empty_reply() {
        for message in [
            json!({"content": null}),
            json!({"role": "assistant"}),
            json!({"content": null, "tool_calls": [{"function": {"name": "f"}}]}),
        ] {
            match read(&with(message, json!("stop"))) {
                Err(NoAnswer::Lost(reason)) => assert!(reason.contains("without content")),
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
            (json!({"choices": [{"text": "B", "finish_reason": "length"}]}), "without a message"),
            (with(json!({"content": 7}), json!("stop")), "expected a string"),
        ] {
            match read(&answer) {
                Err(NoAnswer::Lost(reason)) => assert!(reason.contains(said), "{reason}"),
                other => panic!("{other:?}"),
            }
        }
    }

    #[test]
    fn an_error_within_a_success_is_an_error() {
        let error_of = |error: Value| match read(&json!({"error": error})) {
            Err(NoAnswer::Refused(error)) => (error.status, error.message),
            other => panic!("{other:?}"),
        };
        let overloaded = json!({"code": 502, "message": "overloaded"});
        assert_eq!(error_of(overloaded), (502, "overloaded".to_owned()));
        assert_eq!(error_of(json!("odd")), (500, "odd".to_owned()));
    }

    fn error(body: &str) -> ServerError {
        ServerError::read(400, body.as_bytes())
    }

    #[test]
    fn the_usual_shapes_of_errors_are_read() {
        let openai = error(
            r#"{"error": {"message": "Unsupported", "type": "t", "param": "response_format.type", "code": "c"}}"#,
        );
        assert_eq!(
            (openai.message.as_str(), openai.code.as_deref(), openai.parameter.as_deref()),
            ("Unsupported", Some("c"), Some("response_format.type"))
        );
        let vllm =
            error(r#"{"object": "error", "message": "too long", "param": null, "code": 400}"#);
        assert_eq!((vllm.message.as_str(), vllm.parameter), ("too long", None));
        assert_eq!(error(r#"{"error": "bare"}"#).message, "bare");
        let fastapi = error(
            r#"{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs", "input": "the prompt"}]}"#,
        );
        assert_eq!(fastapi.message, "seed: Extra inputs");
        assert_eq!(fastapi.parameter.as_deref(), Some("seed"));
        assert_eq!(error(r#"{"detail": "Not Found"}"#).message, "Not Found");
        assert_eq!(error(r#"{"detail": []}"#).message, r#"{"detail":[]}"#);
        assert_eq!(error("<h1>Bad\nGateway</h1>").message, "<h1>Bad Gateway</h1>");
        assert_eq!(error(" \n").message, "");
        assert_eq!(error(r#"{"odd": 1}"#).message, r#"{"odd":1}"#);
    }

    #[test]
    fn a_parameter_is_blamed_as_a_word_and_where_one_is_named_no_other() {
        assert!(error("unknown field `seed`").names_parameter("seed"));
        assert!(!error("linseed and seeds, seed_x").names_parameter("seed"));
        let named = error(r#"{"error": {"message": "seed", "param": "messages[0].content"}}"#);
        assert!(!named.names_parameter("seed") && named.names_parameter("messages"));
    }

    #[test]
    fn an_exhausted_quota_is_not_waited_for() {
        let limited = |body: &str| ServerError::read(429, body.as_bytes()).is_transient();
        assert!(limited("slow down"));
        assert!(!limited(r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#));
    }
}
