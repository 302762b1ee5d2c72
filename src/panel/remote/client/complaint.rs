//! Reads a server's error in any of the usual shapes.

use serde_json::Value;

use super::retry;
use crate::text::ellipsis;

/// Characters of a server's message that are kept: it may repeat the whole prompt.
const MESSAGE_CHARS: usize = 300;

/// What a server says is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Complaint {
    pub status: u16,
    pub code: Option<String>,
    /// The parameter that it names as the culprit.
    pub parameter: Option<String>,
    pub message: String,
    /// All of the message, for looking a parameter up.
    whole: String,
}

impl Complaint {
    /// Reads an error's body. The shapes: OpenAI's `{"error": {message, code, param}}`, also with a bare text; the
    /// same without the outer `error`; FastAPI's `{"detail": [{loc, msg}]}`; anything else as it stands.
    pub fn read(status: u16, body: &[u8]) -> Complaint {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) if value.is_object() => Complaint::of(status, &value),
            _ => Complaint::new(status, &String::from_utf8_lossy(body), None, None),
        }
    }

    /// The error within an answer that claims success; its code, where it is a status, counts for the answer's.
    pub fn within(value: &Value) -> Option<Complaint> {
        let error = value.get("error").filter(|error| !error.is_null())?;
        let code = error.get("code").and_then(Value::as_u64);
        let status = code.and_then(|code| u16::try_from(code).ok());
        let status = status.filter(|status| (400..600).contains(status));
        Some(Complaint::of(status.unwrap_or(500), value))
    }

    fn of(status: u16, value: &Value) -> Complaint {
        if let Some(detail) = value.get("detail") {
            return Complaint::of_detail(status, detail);
        }
        let error = value.get("error").unwrap_or(value);
        let text = |name: &str| match error.get(name)? {
            Value::String(text) => Some(text.clone()),
            Value::Null => None,
            other => Some(other.to_string()),
        };
        let message = error.as_str().map(str::to_owned).or_else(|| text("message"));
        let message = message.unwrap_or_else(|| value.to_string());
        Complaint::new(status, &message, text("code"), text("param"))
    }

    fn of_detail(status: u16, detail: &Value) -> Complaint {
        let Some(first) = detail.get(0) else {
            let message = detail.as_str().map_or_else(|| detail.to_string(), str::to_owned);
            return Complaint::new(status, &message, None, None);
        };
        // As in ["body", "response_format", "type"].
        let place = first.get("loc").and_then(Value::as_array);
        let place = place.into_iter().flatten().filter_map(Value::as_str);
        let place: Vec<&str> = place.filter(|part| *part != "body").collect();
        let said = first.get("msg").and_then(Value::as_str).unwrap_or("is wrong");
        let message = format!("{}: {said}", place.join("."));
        let parameter = place.first().map(|&part| part.to_owned());
        Complaint::new(status, &message, None, parameter)
    }

    fn new(
        status: u16,
        message: &str,
        code: Option<String>,
        parameter: Option<String>,
    ) -> Complaint {
        let whole: String =
            message.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
        let whole = whole.trim().to_owned();
        let short = ellipsis(&whole, MESSAGE_CHARS);
        Complaint {
            status,
            code,
            parameter,
            message: if short.is_empty() { "no reason given".to_owned() } else { short },
            whole,
        }
    }

    /// Whether another attempt may fare better; an exhausted quota comes with the status of a rate limit.
    pub fn is_transient(&self) -> bool {
        let is_quota = self.code.as_deref() == Some("insufficient_quota");
        retry::is_transient(self.status) && !is_quota
    }

    /// Whether it is about the parameter that goes by one of `names`.
    pub fn blames(&self, names: &[&str]) -> bool {
        match &self.parameter {
            Some(parameter) => names.iter().any(|name| is_word(parameter, name)),
            None => names.iter().any(|name| is_word(&self.whole, name)),
        }
    }
}

/// Whether `word` stands in `text` by itself.
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

    fn read(body: &str) -> Complaint {
        Complaint::read(400, body.as_bytes())
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
        assert_eq!(read("").message, "no reason given");
        assert_eq!(read(r#"{"odd": 1}"#).message, r#"{"odd":1}"#);
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        let message = read(&"é".repeat(1000)).message;
        assert_eq!(message.chars().count(), MESSAGE_CHARS + 1);
    }

    #[test]
    fn a_parameter_is_blamed_as_a_word_and_where_one_is_named_no_other() {
        assert!(read("unknown field `seed`").blames(&["seed"]));
        assert!(!read("linseed and seeds, seed_x").blames(&["seed"]));
        let named = read(r#"{"error": {"message": "seed", "param": "messages[0].content"}}"#);
        assert!(!named.blames(&["seed"]) && named.blames(&["messages"]));
    }

    #[test]
    fn an_exhausted_quota_is_not_waited_for() {
        let limited = |body: &str| Complaint::read(429, body.as_bytes()).is_transient();
        assert!(limited("slow down"));
        assert!(!limited(r#"{"error": {"message": "pay", "code": "insufficient_quota"}}"#));
    }
}
