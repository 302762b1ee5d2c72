//! Why an attempt brought no answer; a server's error, read from any of the usual JSON shapes or plain text.

use serde_json::Value;

#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The connection failed, timed out or ended early, or what came is no whole answer: worth another attempt.
    Lost(String),
    /// The answer exceeds the size limit.
    TooLong,
    Refused(ServerError),
}

/// What a server says is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerError {
    pub status: u16,
    pub code: Option<String>,
    /// The request parameter that it names, as `param` or in `loc`.
    pub parameter: Option<String>,
    /// On one line; empty where the server gives none. It may be long, and may repeat the API key.
    pub message: String,
}

impl ServerError {
    /// Reads an error's body. The shapes: OpenAI's `{"error": {message, code, param}}`, also with a bare text; the
    /// same without the outer `error`; FastAPI's `{"detail": [{loc, msg}]}`; anything else as it stands.
    pub fn read(status: u16, body: &[u8]) -> ServerError {
        let value = serde_json::from_slice(body).ok().filter(Value::is_object);
        let value = value.unwrap_or_else(|| String::from_utf8_lossy(body).into());
        ServerError::of(status, &value)
    }

    /// The error in a response with a success status; its `code` counts as the status where it is one, else 500.
    pub fn within(error: &Value) -> ServerError {
        let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
        let status = code.filter(|status| (400..600).contains(status));
        ServerError::of(status.unwrap_or(500), error)
    }

    fn of(status: u16, value: &Value) -> ServerError {
        let mut said = ["detail", "error"].into_iter().map(|name| &value[name]);
        let said = said.find(|said| !said.is_null()).unwrap_or(value);
        let text = |value: &Value| match value {
            Value::Null => None,
            Value::String(text) => Some(text.clone()),
            other => Some(other.to_string()),
        };
        // As in ["body", "response_format", "type"].
        let place = said[0]["loc"].as_array().into_iter().flatten().filter_map(Value::as_str);
        let place: Vec<&str> = place.filter(|part| *part != "body").collect();
        let (message, parameter) = match &said[0] {
            Value::Null => (text(&said["message"]), text(&said["param"])),
            first => {
                let message = first["msg"].as_str().unwrap_or("is wrong");
                let message = format!("{}: {message}", place.join("."));
                (Some(message), place.first().map(|part| (*part).to_owned()))
            }
        };
        let whole = if said.is_object() { value } else { said };
        let message = message.or_else(|| text(whole)).unwrap_or_default();
        let message = message.replace(char::is_control, " ").trim().to_owned();
        ServerError { status, code: text(&said["code"]), parameter, message }
    }

    /// Whether another attempt may succeed. An exhausted quota, which comes with the status of a rate limit, is not transient, nor is what
    /// a filter withheld.
    pub fn is_transient(&self) -> bool {
        let is_quota = self.code.as_deref() == Some("insufficient_quota");
        let may_pass = matches!(self.status, 408 | 409 | 425 | 429 | 500 | 502..=599);
        may_pass && !is_quota && !self.is_filter()
    }

    /// Whether the provider's filter withheld the prompt or its answer.
    pub fn is_filter(&self) -> bool {
        matches!(self.code.as_deref(), Some("content_filter" | "content_policy_violation"))
    }

    /// Whether it is about the parameter of this name: the parameter that it gives, else a word of its message.
    pub fn names_parameter(&self, name: &str) -> bool {
        let is_part = |char: char| char.is_alphanumeric() || char == '_';
        let text = self.parameter.as_ref().unwrap_or(&self.message);
        text.split(|char| !is_part(char)).any(|word| word == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: &str) -> ServerError {
        ServerError::read(400, body.as_bytes())
    }

    #[test]
    fn the_usual_shapes_are_read() {
        let openai = read(
            r#"{"error": {"message": "Unsupported", "type": "t", "param": "response_format.type", "code": "c"}}"#,
        );
        assert_eq!(
            (openai.message.as_str(), openai.code.as_deref(), openai.parameter.as_deref()),
            ("Unsupported", Some("c"), Some("response_format.type"))
        );
        let vllm =
            read(r#"{"object": "error", "message": "too long", "param": null, "code": 400}"#);
        assert_eq!((vllm.message.as_str(), vllm.code.as_deref()), ("too long", Some("400")));
        assert_eq!(read(r#"{"error": "bare"}"#).message, "bare");
        let fastapi = read(
            r#"{"detail": [{"loc": ["body", "seed"], "msg": "Extra inputs", "input": "the prompt"}]}"#,
        );
        assert_eq!(fastapi.message, "seed: Extra inputs");
        assert_eq!(fastapi.parameter.as_deref(), Some("seed"));
        assert_eq!(read(r#"{"detail": "Not Found"}"#).message, "Not Found");
        assert_eq!(read(r#"{"detail": []}"#).message, "[]");
        assert_eq!(read("<h1>Bad\nGateway</h1>").message, "<h1>Bad Gateway</h1>");
        assert_eq!(read(" \n").message, "");
        assert_eq!(read(r#"{"odd": 1}"#).message, r#"{"odd":1}"#);
    }

    #[test]
    fn a_parameter_is_blamed_as_a_word_and_where_one_is_named_no_other() {
        assert!(read("unknown field `seed`").names_parameter("seed"));
        assert!(!read("linseed and seeds, seed_x").names_parameter("seed"));
        let named = read(r#"{"error": {"message": "seed", "param": "messages[0].content"}}"#);
        assert!(!named.names_parameter("seed") && named.names_parameter("messages"));
    }

    #[test]
    fn an_exhausted_quota_is_not_waited_for() {
        let limited = |body: &str| ServerError::read(429, body.as_bytes()).is_transient();
        assert!(limited("slow down"));
        assert!(!limited(r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#));
    }
}
