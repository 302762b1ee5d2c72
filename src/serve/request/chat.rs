//! Chat completion requests.

use serde::Deserialize;
use serde_json::Value;

use super::decoding::{Decoding, MOST_LOGPROBS};
use super::fields::{Fields, asks_for_nothing, parse, take, within};
use crate::chat::Message;
use crate::serve::error::ApiError;

#[derive(Debug, Deserialize)]
pub struct ChatRequest {
    pub model: Option<String>,
    messages: Vec<SentMessage>,
    #[serde(default)]
    logprobs: bool,
    top_logprobs: Option<usize>,
    enable_thinking: Option<bool>,
    chat_template_kwargs: Option<TemplateArguments>,
    #[serde(flatten)]
    rest: Fields,
    /// Whether the model is to think, if the request says so.
    #[serde(skip)]
    pub thinks: Option<bool>,
    #[serde(skip)]
    pub decoding: Decoding,
    /// The messages as models read them.
    #[serde(skip)]
    pub texts: Vec<Message>,
    /// Fields whose value asks for something.
    #[serde(skip)]
    pub given: Vec<String>,
    /// Fields that have no effect on a model.
    #[serde(skip)]
    pub unknown: Vec<String>,
}

impl ChatRequest {
    pub fn read(body: &[u8]) -> Result<ChatRequest, ApiError> {
        let mut fields = parse(body)?;
        let given = fields.iter().filter(|(_, value)| !asks_for_nothing(value));
        let given = given.map(|(name, _)| name.clone()).collect();
        // Other efforts have no effect.
        let is_without = fields.get("reasoning_effort").is_some_and(|effort| effort == "none");
        if is_without {
            fields.shift_remove("reasoning_effort");
        }
        let mut request = take(&mut fields, |own: &mut ChatRequest| &mut own.rest)?;
        request.texts = messages(std::mem::take(&mut request.messages))?;
        request.decoding = Decoding::take(&mut fields)?;
        within("top_logprobs", request.top_logprobs.map(|top| top as f64), 0.0..=MOST_LOGPROBS)?;
        let template = request.chat_template_kwargs.as_ref();
        let thinks = template.and_then(|template| template.enable_thinking);
        request.thinks = thinks.or(request.enable_thinking).or(is_without.then_some(false));
        request.unknown = fields.into_iter().map(|(name, _)| name).collect();
        Ok(ChatRequest { given, ..request })
    }

    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub fn logprobs(&self) -> Option<usize> {
        self.logprobs.then(|| self.top_logprobs.unwrap_or(0))
    }
}

/// What else would change the prompt is refused.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TemplateArguments {
    enable_thinking: Option<bool>,
}

/// A message of a chat.
#[derive(Debug, Deserialize)]
struct SentMessage {
    role: String,
    content: Option<Content>,
    tool_calls: Option<Value>,
}

#[derive(Debug, Deserialize)]
#[serde(
    untagged,
    expecting = "is of another type; expected a string, or an array of parts with `text`: the models here read text alone"
)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    _kind: TextKind,
    text: String,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum TextKind {
    Text,
    InputText,
    OutputText,
}

/// The messages as models read them; the texts of parts are joined with newlines.
///
/// # Errors
/// No messages; one without content; calls of tools.
fn messages(list: Vec<SentMessage>) -> Result<Vec<Message>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "messages is empty; at least one is needed"));
    }
    let read =
        list.into_iter().enumerate().map(|(index, SentMessage { role, content, tool_calls })| {
            if tool_calls.is_some_and(|calls| !asks_for_nothing(&calls)) {
                return Err(ApiError::unsupported(&format!("messages[{index}].tool_calls")));
            }
            let content = match content {
                Some(Content::Text(text)) => text,
                Some(Content::Parts(parts)) => {
                    parts.into_iter().map(|part| part.text).collect::<Vec<_>>().join("\n")
                }
                None if role == "assistant" => String::new(),
                None => return Err(ApiError::missing(&format!("messages[{index}].content"))),
            };
            match role.as_str() {
                "system" | "developer" => Ok(Message::new("system", content)),
                "user" | "assistant" | "tool" => Ok(Message::new(role, content)),
                _ => {
                    let place = format!("messages[{index}].role");
                    let message = format!("{place} is not system, user, assistant or tool");
                    Err(ApiError::invalid(&place, message))
                }
            }
        });
    read.collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

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
        let read: Vec<_> = read.unwrap().texts.into_iter().map(|m| (m.role, m.content)).collect();
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
            (user(json!(["a"])), "invalid_type", "messages[0].content"),
            (
                json!({"messages": [{"role": "assistant", "tool_calls": {"id": "a"}}]}),
                "unsupported_parameter",
                "messages[0].tool_calls",
            ),
            (user(json!([{"type": "image_url"}])), "invalid_type", "messages[0].content"),
            (user(json!([{"type": "text"}])), "invalid_type", "messages[0].content"),
        ];
        for (body, code, param) in cases {
            let error = chat(body.clone()).unwrap_err();
            assert_eq!((error.code.name, error.param.as_deref()), (code, Some(param)), "{body}");
        }
    }

    #[test]
    fn thinking_is_switched_in_every_way_and_unknown_fields_are_told() {
        let with = |extra: Value| {
            let mut body = json!({"messages": [{"role": "user", "content": "a"}]});
            body.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
            chat(body)
        };
        assert_eq!(with(json!({})).unwrap().thinks, None);
        assert_eq!(with(json!({"enable_thinking": true})).unwrap().thinks, Some(true));
        assert_eq!(with(json!({"reasoning_effort": "none"})).unwrap().thinks, Some(false));
        // What is closest to the template counts.
        let inner = json!({"enable_thinking": true, "chat_template_kwargs": {"enable_thinking": false},
            "reasoning_effort": "low", "zeta": 1});
        let inner = with(inner).unwrap();
        assert_eq!(inner.thinks, Some(false));
        assert_eq!(inner.unknown, ["reasoning_effort", "zeta"]);
        let other = with(json!({"chat_template_kwargs": {"tone": 1}})).unwrap_err();
        assert_eq!(
            (other.code.name, other.param.as_deref()),
            ("unsupported_parameter", Some("tone"))
        );
        assert_eq!(with(json!({"top_logprobs": 3})).unwrap().logprobs(), None);
        assert_eq!(with(json!({"logprobs": true})).unwrap().logprobs(), Some(0));
    }
}
