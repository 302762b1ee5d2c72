//! Chat completion requests.

use serde::Deserialize;

use super::decoding::{Decoding, MOST_LOGPROBS};
use super::fields::{Fields, TextOrList, agreed, asks_for_nothing, parse, take, unknown, within};
use crate::chat::Message;
use crate::serve::error::{ApiError, Code};

#[derive(Debug, Deserialize)]
pub struct ChatRequest {
    pub model: Option<String>,
    messages: Vec<SentMessage>,
    #[serde(default)]
    logprobs: bool,
    top_logprobs: Option<usize>,
    enable_thinking: Option<bool>,
    #[serde(default)]
    chat_template_kwargs: TemplateArguments,
    /// Only `none` has an effect.
    reasoning_effort: Option<String>,
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
    /// Of inner objects those that nobody knows.
    #[serde(skip)]
    pub inside: Vec<String>,
}

impl ChatRequest {
    pub fn read(body: &[u8]) -> Result<ChatRequest, ApiError> {
        let mut fields = parse(body)?;
        // That flag asks for something where it is false.
        let given = fields
            .iter()
            .filter(|(name, value)| !asks_for_nothing(value) || *name == "enable_thinking");
        let given = given.map(|(name, _)| name.clone()).collect();
        let mut request = take(&mut fields, |own: &mut ChatRequest| &mut own.rest)?;
        let mut inside = Vec::new();
        let sent = std::mem::take(&mut request.messages);
        request.texts = messages(sent, &mut inside)?;
        request.decoding = Decoding::take(&mut fields, &mut inside)?;
        within("top_logprobs", request.top_logprobs.map(|top| top as f64), 0.0..=MOST_LOGPROBS)?;
        if request.top_logprobs.is_some_and(|top| top > 0) && !request.logprobs {
            let message = "top_logprobs is given without logprobs: true";
            return Err(ApiError::invalid("top_logprobs", message));
        }
        let TemplateArguments { enable_thinking, rest } = &request.chat_template_kwargs;
        inside.extend(unknown("chat_template_kwargs", rest));
        let thinks_not = request.reasoning_effort.as_ref().map(|effort| effort == "none");
        request.thinks = agreed([
            ("chat_template_kwargs.enable_thinking", *enable_thinking),
            ("enable_thinking", request.enable_thinking),
            ("reasoning_effort", (thinks_not == Some(true)).then_some(false)),
        ])?;
        let effort = (thinks_not == Some(false)).then(|| "reasoning_effort".to_owned());
        request.unknown = fields.into_iter().map(|(name, _)| name).chain(effort).collect();
        Ok(ChatRequest { given, inside, ..request })
    }

    /// The number of top log-probabilities for each token; `None` for no log-probabilities.
    pub fn logprobs(&self) -> Option<usize> {
        self.logprobs.then(|| self.top_logprobs.unwrap_or(0))
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct TemplateArguments {
    enable_thinking: Option<bool>,
    #[serde(flatten)]
    rest: Fields,
}

/// A message of a chat.
#[derive(Debug, Deserialize)]
struct SentMessage {
    role: Role,
    content: Option<TextOrList<Part>>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Role {
    #[serde(alias = "developer")]
    System,
    User,
    Assistant,
    Tool,
}

#[derive(Debug, Deserialize)]
struct Part {
    #[serde(rename = "type")]
    kind: PartKind,
    text: Option<String>,
    #[serde(flatten)]
    rest: Fields,
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
enum PartKind {
    #[serde(alias = "input_text", alias = "output_text")]
    Text,
    #[serde(other)]
    Other,
}

/// The messages as models read them; `ignored` gets their unknown fields, each once.
///
/// # Errors
/// No messages; one without content; what is no text.
fn messages(list: Vec<SentMessage>, ignored: &mut Vec<String>) -> Result<Vec<Message>, ApiError> {
    if list.is_empty() {
        return Err(ApiError::invalid("messages", "messages is empty; at least one is needed"));
    }
    let mut read = Vec::with_capacity(list.len());
    for (index, SentMessage { role, content, rest }) in list.into_iter().enumerate() {
        let place = format!("messages[{index}].content");
        if rest.get("tool_calls").is_some_and(|calls| !calls.is_null() && !asks_for_nothing(calls))
        {
            return Err(ApiError::unsupported(&format!("messages[{index}].tool_calls")));
        }
        let content = match content {
            Some(TextOrList::Text(text)) => text,
            Some(TextOrList::List(parts)) => text_of_parts(&place, parts, ignored)?,
            None if role == Role::Assistant => String::new(),
            None => return Err(ApiError::missing(&place)),
        };
        ignored.extend(unknown("messages[]", &rest));
        let role = match role {
            Role::System => "system",
            Role::User => "user",
            Role::Assistant => "assistant",
            Role::Tool => "tool",
        };
        read.push(Message::new(role, content));
    }
    ignored.sort();
    ignored.dedup();
    Ok(read)
}

/// The texts of the parts, joined with newlines.
fn text_of_parts(
    place: &str,
    parts: Vec<Part>,
    ignored: &mut Vec<String>,
) -> Result<String, ApiError> {
    let mut texts = Vec::with_capacity(parts.len());
    for (index, Part { kind, text, rest }) in parts.into_iter().enumerate() {
        let param = format!("{place}[{index}]");
        if kind == PartKind::Other {
            let message = format!("{param}: the models here read text alone");
            return Err(ApiError::of(Code::IMAGE_UNSUPPORTED, &param, message));
        }
        texts.push(text.ok_or_else(|| ApiError::missing(&format!("{param}.text")))?);
        ignored.extend(unknown("messages[].content[]", &rest));
    }
    Ok(texts.join("\n"))
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
            (user(json!([{"type": "image_url"}])), "image_unsupported", "messages[0].content[0]"),
            (user(json!([{"type": "text"}])), "missing_parameter", "messages[0].content[0].text"),
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
        let inner = with(
            json!({"reasoning_effort": "none", "chat_template_kwargs": {"enable_thinking": false, "tone": 1}, "zeta": 1}),
        );
        let inner = inner.unwrap();
        assert_eq!(inner.thinks, Some(false));
        assert_eq!(inner.unknown, ["zeta"]);
        assert_eq!(inner.inside, ["chat_template_kwargs.tone"]);
        for two in [
            json!({"enable_thinking": true, "chat_template_kwargs": {"enable_thinking": false}}),
            json!({"chat_template_kwargs": {"enable_thinking": true}, "reasoning_effort": "none"}),
        ] {
            assert!(with(two).unwrap_err().message.contains("contradict"));
        }
        assert!(with(json!({"top_logprobs": 3})).is_err());
        assert_eq!(with(json!({"logprobs": true})).unwrap().logprobs(), Some(0));
    }
}
