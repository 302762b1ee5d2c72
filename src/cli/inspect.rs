//! Shared by `generate` and its verbs: the model, and the input text.

use std::path::Path;

use clap::Args;
use serde::Deserialize;

use super::options::HubFlags;
use crate::chat::Message;
use crate::cli::exit::Failure;
use crate::hub::{Checkpoint, resolve};
use crate::outside;

#[derive(Debug, Args)]
pub struct ModelFlags {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, help_heading = "Model", value_name = "MODEL", required = true)]
    model: Option<String>,
    #[command(flatten)]
    hub: HubFlags,
}

impl ModelFlags {
    pub fn find(&self) -> Result<Checkpoint, Failure> {
        // Absent only beside a verb that has one of its own.
        let model = self.model.as_deref().unwrap_or_default();
        Ok(resolve(model, &self.hub.options(false)?)?)
    }
}

/// The text itself, or stdin's for `-`.
pub fn read_text(text: &str) -> Result<String, Failure> {
    match text {
        "-" => Ok(std::io::read_to_string(std::io::stdin())?),
        text => Ok(text.to_owned()),
    }
}

/// A message as a file of them has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Given {
    role: String,
    content: Content,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = r#"a `content` is a text or a list of {"type": "text", "text": "…"}"#
)]
enum Content {
    Text(String),
    Parts(Vec<Part>),
}

#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case", deny_unknown_fields)]
enum Part {
    Text { text: String },
}

/// A file that holds a JSON list of messages. The texts of a message's parts are joined with newlines, as the server joins them.
pub fn read_messages(path: &Path) -> Result<Vec<Message>, Failure> {
    let text = outside::given_text(path)?;
    let given: Vec<Given> = serde_json::from_str(&text).map_err(|error| {
        Failure::usage(
            format!("{} is not a list of messages: {error}", path.display()),
            r#"write [{"role": "user", "content": "…"}]"#,
        )
    })?;
    let message = |Given { role, content }| match content {
        Content::Text(text) => Message::new(role, text),
        Content::Parts(parts) => {
            let texts: Vec<String> = parts.into_iter().map(|Part::Text { text }| text).collect();
            Message::new(role, texts.join("\n"))
        }
    };
    Ok(given.into_iter().map(message).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_file_says_is_asked_or_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.json");
        let read = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_messages(&path).map_err(|error| error.to_string())
        };
        let parts = r#"[{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
            {"role": "assistant", "content": "c"}]"#;
        let expected = [Message::new("user", "a\nb"), Message::new("assistant", "c")];
        let found = read(parts).unwrap();
        assert_eq!(found, expected);
        assert_eq!(found[0].content, "a\nb");
        for (message, problem) in [
            (r#""content": ["hello doctor"]"#, "a `content` is a text or a list of"),
            (
                r#""content": [{"passages": {"round": 0, "step": 0}}]"#,
                "a `content` is a text or a list of",
            ),
            (
                r#""content": [{"type": "image_url", "image_url": {"url": "x"}}]"#,
                "a `content` is a text or a list of",
            ),
            (r#""content": null"#, "a `content` is a text or a list of"),
            (r#""content": "a", "name": "Ann""#, "unknown field `name`"),
            (r#""content": "a", "tool_calls": []"#, "unknown field `tool_calls`"),
        ] {
            let said = read(&format!(r#"[{{"role": "user", {message}}}]"#)).unwrap_err();
            assert!(said.contains(problem), "{message}: {said}");
        }
    }
}
