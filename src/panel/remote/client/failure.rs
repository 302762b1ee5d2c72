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
        match serde_json::from_slice::<Value>(body) {
            Ok(value) if value.is_object() => ServerError::of(status, &value),
            _ => ServerError::new(status, &String::from_utf8_lossy(body), None, None),
        }
    }

    /// The error in a response with a success status; its `code` counts as the status where it is one, else 500.
    pub fn within(error: &Value) -> ServerError {
        let code = error.get("code").and_then(Value::as_u64);
        let status = code.and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|status| (400..600).contains(status));
        ServerError::of(status.unwrap_or(500), error)
    }

    fn of(status: u16, value: &Value) -> ServerError {
        if let Some(detail) = value.get("detail") {
            return ServerError::of_detail(status, detail);
        }
        let error = value.get("error").unwrap_or(value);
        let text = |name: &str| match error.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        let message = error.as_str().map(str::to_owned).or_else(|| text("message"));
        let message = message.unwrap_or_else(|| value.to_string());
        ServerError::new(status, &message, text("code"), text("param"))
    }

    fn of_detail(status: u16, detail: &Value) -> ServerError {
        let Some(first) = detail.get(0) else {
            let message = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
            return ServerError::new(status, &message, None, None);
        };
        // As in ["body", "response_format", "type"].
        let place = first.get("loc").and_then(Value::as_array);
        let place = place.into_iter().flatten().filter_map(Value::as_str);
        let place: Vec<&str> = place.filter(|part| *part != "body").collect();
        let said = first.get("msg").and_then(Value::as_str).unwrap_or("is wrong");
        let message = format!("{}: {said}", place.join("."));
        let parameter = place.first().map(|&part| part.to_owned());
        ServerError::new(status, &message, None, parameter)
    }

    fn new(
        status: u16,
        message: &str,
        code: Option<String>,
        parameter: Option<String>,
    ) -> ServerError {
        let message = message.replace(char::is_control, " ").trim().to_owned();
        ServerError { status, code, parameter, message }
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

    /// Whether it is about a parameter of one of these names: the parameter that it gives, else any in its message.
    pub fn names_parameter(&self, names: &[&str]) -> bool {
        let text = self.parameter.as_ref().unwrap_or(&self.message);
        names.iter().any(|name| is_word(text, name))
    }
}

/// Whether `text` contains `word` as a whole word.
fn is_word(text: &str, word: &str) -> bool {
    let is_part = |char: char| char.is_alphanumeric() || char == '_';
    text.match_indices(word).any(|(start, _)| {
        let (before, after) = (&text[..start], &text[start + word.len()..]);
        !before.ends_with(is_part) && !after.starts_with(is_part)
    })
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
        assert!(read("unknown field `seed`").names_parameter(&["seed"]));
        assert!(!read("linseed and seeds, seed_x").names_parameter(&["seed"]));
        let named = read(r#"{"error": {"message": "seed", "param": "messages[0].content"}}"#);
        assert!(!named.names_parameter(&["seed"]) && named.names_parameter(&["messages"]));
    }

    #[test]
    fn an_exhausted_quota_is_not_waited_for() {
        let limited = |body: &str| ServerError::read(429, body.as_bytes()).is_transient();
        assert!(limited("slow down"));
        assert!(!limited(r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#));
    }
}
