//! Parses chat completion requests.

use serde_json::Value;

use super::decoding::{Decoding, MOST_LOGPROBS};
use super::fields::{
    Fields, agreed, asks_for_nothing, inner_flag, object, quoted, required, text, unknown,
    wrong_type,
};
use crate::chat::TurnOptions;
use crate::record::Message;
use crate::serve::error::{ApiError, Code};

#[derive(Clone, Debug)]
pub struct ChatRequest {
    pub model: Option<String>,
    pub messages: Vec<Message>,
    pub decoding: Decoding,
    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub logprobs: Option<usize>,
    pub turn: Turn,
    /// Known fields whose value asks for something.
    pub given: Vec<String>,
    /// Unknown fields.
    pub ignored: Vec<String>,
}

impl ChatRequest {
    pub fn read(body: &[u8]) -> Result<ChatRequest, ApiError> {
        let mut fields = Fields::parse(body)?;
        let model = fields.text("model")?;
        let Messages { list: messages, ignored } = messages(fields.take("messages"))?;
        let mut decoding = Decoding::read(&mut fields)?;
        let wanted = fields.flag("logprobs")?.unwrap_or(false);
        let top = fields.count("top_logprobs", MOST_LOGPROBS)?;
        if top.is_some_and(|top| top > 0) && !wanted {
            let message = "top_logprobs is given without logprobs: true";
            return Err(ApiError::invalid("top_logprobs", message));
        }
        let turn = turn(&mut fields)?;
        decoding.without_effect.extend(turn.without_effect);
        let known = ignored.into_iter().chain(decoding.ignored.iter().cloned());
        let inside: Vec<String> = known.chain(turn.ignored.iter().cloned()).collect();
        Ok(ChatRequest {
            model,
            messages,
            decoding,
            logprobs: wanted.then(|| top.unwrap_or(0)),
            turn,
            given: std::mem::take(&mut fields.given),
            ignored: fields.rest().into_iter().chain(inside).collect(),
        })
    }
}

pub struct Messages {
    pub list: Vec<Message>,
    /// Unknown fields of messages, each once.
    pub ignored: Vec<String>,
}

/// How the model's turn begins.
#[derive(Clone, Debug)]
pub struct Turn {
    /// `None` for the default of the model's card.
    pub thinking: Option<bool>,
    opens: Option<bool>,
    /// Whether the completion continues the last message.
    pub continues_last: bool,
    /// Unknown template arguments.
    pub ignored: Vec<String>,
    /// An effort other than none.
    pub without_effect: Option<&'static str>,
}

impl Turn {
    /// Of a model that thinks where nobody says.
    pub fn of(&self, thinks: bool) -> TurnOptions {
        TurnOptions {
            thinking: self.thinking.unwrap_or(thinks),
            opens_turn: self.opens.unwrap_or(!self.continues_last),
            continues_last: self.continues_last,
        }
    }
}

/// # Errors
/// A value of another type; fields that contradict each other.
pub fn turn(fields: &mut Fields) -> Result<Turn, ApiError> {
    const OPENS: &str = "add_generation_prompt";
    const CONTINUES: &str = "continue_final_message";
    const KWARGS: &str = "chat_template_kwargs";
    const EFFORT: &str = "reasoning_effort";
    let effort = fields.text(EFFORT)?;
    let by_effort = match effort.as_deref() {
        Some("none") => Some(false),
        None | Some("minimal" | "low" | "medium" | "high" | "xhigh") => None,
        Some(other) => {
            let message = format!(
                "{EFFORT} is {}; expected none, minimal, low, medium, high, xhigh",
                quoted(other)
            );
            return Err(ApiError::invalid(EFFORT, message));
        }
    };
    let plain = fields.flag("enable_thinking")?;
    let mut kwargs = fields.inner(KWARGS)?.unwrap_or_default();
    let inner = inner_flag(KWARGS, &mut kwargs, "enable_thinking")?;
    let opens = fields.flag(OPENS)?;
    let continues_last = fields.flag(CONTINUES)?.unwrap_or(false);
    if continues_last && opens == Some(true) {
        let message = format!("{CONTINUES} and {OPENS} are both true; give one");
        return Err(ApiError::invalid(CONTINUES, message));
    }
    Ok(Turn {
        thinking: agreed([
            ("chat_template_kwargs.enable_thinking", inner),
            ("enable_thinking", plain),
            (EFFORT, by_effort),
        ])?,
        opens,
        continues_last,
        ignored: kwargs.into_iter().map(|(name, _)| format!("{KWARGS}.{name}")).collect(),
        without_effect: effort.filter(|_| by_effort.is_none()).map(|_| EFFORT),
    })
}

/// # Errors
/// No messages; a malformed message, or an unsupported role or content.
pub fn messages(value: Option<Value>) -> Result<Messages, ApiError> {
    let list = match required(value, "messages")? {
        Value::Array(list) if list.is_empty() => {
            return Err(ApiError::invalid("messages", "messages is empty; at least one is needed"));
        }
        Value::Array(list) => list,
        other => return Err(wrong_type("messages", &other, "an array")),
    };
    let mut ignored = Vec::new();
    let numbered = list.into_iter().enumerate();
    let read =
        numbered.map(|(index, value)| message(&format!("messages[{index}]"), value, &mut ignored));
    let list = read.collect::<Result<_, _>>()?;
    ignored.sort();
    ignored.dedup();
    Ok(Messages { list, ignored })
}

fn message(place: &str, value: Value, ignored: &mut Vec<String>) -> Result<Message, ApiError> {
    let mut fields = object(place, value)?;
    let param = format!("{place}.role");
    let role = text(&param, required(fields.shift_remove("role"), &param)?)?;
    let role = match role.as_str() {
        "developer" => "system".to_owned(),
        "system" | "user" | "assistant" | "tool" => role,
        other => {
            let message = format!(
                "{param} is {}; expected system, developer, user, assistant or tool",
                quoted(other)
            );
            return Err(ApiError::invalid(&param, message));
        }
    };
    let calls = fields.shift_remove("tool_calls").unwrap_or_default();
    if !calls.is_null() && !asks_for_nothing(&calls) {
        let param = format!("{place}.tool_calls");
        let message = format!("{param}: tools are not supported");
        return Err(ApiError::of(Code::UnsupportedParameter, &param, message));
    }
    let param = format!("{place}.content");
    let content = match fields.shift_remove("content") {
        Some(Value::String(text)) => text,
        Some(Value::Array(parts)) => text_of_parts(&param, parts, ignored)?,
        None | Some(Value::Null) if role == "assistant" => String::new(),
        None | Some(Value::Null) => return required(None, &param),
        Some(other) => return Err(wrong_type(&param, &other, "a string or an array of parts")),
    };
    ignored.extend(unknown("messages[]", fields));
    Ok(Message::new(role, content))
}

/// The texts of the parts, joined with newlines.
fn text_of_parts(
    place: &str,
    parts: Vec<Value>,
    ignored: &mut Vec<String>,
) -> Result<String, ApiError> {
    let mut texts = Vec::with_capacity(parts.len());
    for (index, part) in parts.into_iter().enumerate() {
        let param = format!("{place}[{index}]");
        let mut part = object(&param, part)?;
        match part.get("type").and_then(Value::as_str) {
            Some("text" | "input_text" | "output_text") => {
                let value = part.shift_remove("text").unwrap_or_default();
                texts.push(text(&format!("{param}.text"), value)?);
                part.shift_remove("type");
                ignored.extend(unknown("messages[].content[]", part));
            }
            Some("image_url" | "input_image" | "input_audio" | "file" | "input_file") => {
                let message = format!("{param}: the models here read text alone");
                return Err(ApiError::of(Code::ImageUnsupported, &param, message));
            }
            _ => {
                let param = format!("{param}.type");
                return Err(ApiError::invalid(&param, format!("{param} is not `text`")));
            }
        }
    }
    Ok(texts.join("\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn chat(body: Value) -> Result<ChatRequest, ApiError> {
        ChatRequest::read(body.to_string().as_bytes())
    }

    #[test]
    fn contents_are_strings_parts_or_nothing() {
        let read = chat(json!({"messages": [
            {"role": "developer", "content": "a"},
            {"role": "user", "content": [{"type": "text", "text": "b"}, {"type": "text", "text": "c"}]},
            {"role": "assistant", "content": null, "tool_calls": []},
        ]}));
        let read: Vec<_> =
            read.unwrap().messages.into_iter().map(|m| (m.role, m.content)).collect();
        let text = |role: &str, content: &str| (role.to_owned(), content.to_owned());
        assert_eq!(read, [text("system", "a"), text("user", "b\nc"), text("assistant", "")]);
    }

    #[test]
    fn messages_that_cannot_be_read_are_refused_by_place() {
        let user = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
        let cases = [
            (json!({}), "missing_parameter", "messages"),
            (json!({"messages": []}), "invalid_value", "messages"),
            (json!({"messages": "a"}), "invalid_type", "messages"),
            (json!({"messages": ["a"]}), "invalid_type", "messages[0]"),
            (json!({"messages": [{"content": "a"}]}), "missing_parameter", "messages[0].role"),
            (
                json!({"messages": [{"role": "nurse", "content": "a"}]}),
                "invalid_value",
                "messages[0].role",
            ),
            (user(Value::Null), "missing_parameter", "messages[0].content"),
            (user(json!(["a"])), "invalid_type", "messages[0].content[0]"),
            (
                json!({"messages": [{"role": "assistant", "tool_calls": {"id": "a"}}]}),
                "unsupported_parameter",
                "messages[0].tool_calls",
            ),
            (user(json!([{"type": "image_url"}])), "image_unsupported", "messages[0].content[0]"),
            (user(json!([{"type": "text"}])), "invalid_type", "messages[0].content[0].text"),
        ];
        for (body, code, param) in cases {
            let error = chat(body.clone()).unwrap_err();
            assert_eq!((error.code.name(), error.param.as_deref()), (code, Some(param)), "{body}");
        }
    }

    #[test]
    fn thinking_is_switched_in_every_way_and_unknown_fields_are_told() {
        let with = |extra: Value| {
            let mut body = json!({"messages": [{"role": "user", "content": "a"}]});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            chat(body)
        };
        assert_eq!(with(json!({})).unwrap().turn.thinking, None);
        assert_eq!(with(json!({"enable_thinking": true})).unwrap().turn.thinking, Some(true));
        assert_eq!(with(json!({"reasoning_effort": "none"})).unwrap().turn.thinking, Some(false));
        let inner = with(
            json!({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": false, "tone": 1}, "zeta": 1}),
        );
        let inner = inner.unwrap();
        assert_eq!(inner.turn.thinking, Some(false));
        assert_eq!(inner.ignored, ["zeta", "chat_template_kwargs.tone"]);
        for two in [
            json!({"enable_thinking": true, "chat_template_kwargs": {"enable_thinking": false}}),
            json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "none"}),
        ] {
            assert!(with(two).unwrap_err().message.contains("contradict"));
        }
        assert!(with(json!({"top_logprobs": 3})).is_err());
        assert_eq!(with(json!({"logprobs": true})).unwrap().logprobs, Some(0));
        let goes_on = with(json!({"continue_final_message": true})).unwrap().turn.of(false);
        assert!(goes_on.continues_last && !goes_on.opens_turn);
        assert!(
            with(json!({"continue_final_message": true, "add_generation_prompt": true})).is_err()
        );
    }
}
