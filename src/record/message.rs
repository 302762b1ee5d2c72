//! One message of a call. Passages that it quotes from a search are logged by reference.

use serde::{Deserialize, Serialize};

/// One message of a call. In JSON its content is one text, or, where it quotes passages, a list of texts and `{"passages": {"round": 0, "step": 1}}`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(from = "Logged", into = "Logged")]
pub struct Message {
    /// Such as `system`, `user`, `assistant`.
    pub role: String,
    /// The whole text; empty in a message with passages that was read from a log.
    pub content: String,
    /// What is logged in place of the text; empty if the message quotes no passages.
    pub parts: Vec<Part>,
}

/// A part of a message that quotes passages.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
pub enum Part {
    /// As it is.
    Text(String),
    /// What a search found, by reference.
    Passages {
        /// Where the search stands in its item.
        passages: SearchPlace,
    },
}

/// The place of a search within its item: the outer turn of the protocol and the step in it, both counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct SearchPlace {
    /// The outer turn.
    pub round: u32,
    /// The step in it.
    pub step: u32,
}

impl Message {
    /// A message that quotes no passages.
    pub fn new(role: impl Into<String>, content: impl Into<String>) -> Message {
        Message { role: role.into(), content: content.into(), parts: Vec::new() }
    }

    /// A message made of parts, each with its text.
    pub fn of_parts(role: &str, parts: Vec<(Part, String)>) -> Message {
        let content = parts.iter().map(|(_, text)| text.as_str()).collect();
        let quotes = parts.iter().any(|(part, _)| matches!(part, Part::Passages { .. }));
        let parts = if quotes { parts.into_iter().map(|(part, _)| part).collect() } else { vec![] };
        Message { role: role.to_owned(), content, parts }
    }
}

/// Messages are equal if they are logged alike.
impl PartialEq for Message {
    fn eq(&self, other: &Message) -> bool {
        let is_equal = match (self.parts.is_empty(), other.parts.is_empty()) {
            (true, true) => self.content == other.content,
            _ => self.parts == other.parts,
        };
        is_equal && self.role == other.role
    }
}

impl Eq for Message {}

/// A message as it is logged.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
struct Logged {
    role: String,
    content: Content,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(untagged)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

impl From<Message> for Logged {
    fn from(Message { role, content, parts }: Message) -> Logged {
        let content = if parts.is_empty() { Content::Text(content) } else { Content::Parts(parts) };
        Logged { role, content }
    }
}

impl From<Logged> for Message {
    fn from(Logged { role, content }: Logged) -> Message {
        match content {
            Content::Text(content) => Message::new(role, content),
            Content::Parts(parts) => Message { parts, ..Message::new(role, String::new()) },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_are_kept_by_reference() {
        let place = SearchPlace { round: 0, step: 1 };
        let parts = vec![
            (Part::Text("Note.\n".into()), "Note.\n".to_owned()),
            (Part::Passages { passages: place }, "A long passage.".to_owned()),
        ];
        let message = Message::of_parts("user", parts);
        assert_eq!(message.content, "Note.\nA long passage.");
        let json = serde_json::to_string(&message).unwrap();
        let expected = r#"{"role":"user","content":["Note.\n",{"passages":{"round":0,"step":1}}]}"#;
        assert_eq!(json, expected);
        let read: Message = serde_json::from_str(&json).unwrap();
        assert_eq!((&read, read.content.as_str()), (&message, ""));
        assert_ne!(Message::new("user", ""), read);

        let plain = Message::of_parts("user", vec![(Part::Text("a".into()), "a".to_owned())]);
        assert_eq!(serde_json::to_string(&plain).unwrap(), r#"{"role":"user","content":"a"}"#);
    }
}
