//! `tokenize`: the ids of texts, or the text and the ids of a chat.

use std::path::PathBuf;

use clap::Args;

use super::inspect::{ModelFlags, read_messages};
use crate::chat::ChatTemplate;
use crate::cli::exit::Failure;
use crate::console;
use crate::panel::PanelError;
use crate::tokenizer::Tokenizer;

#[derive(Debug, Args)]
pub struct Tokenize {
    #[command(flatten)]
    model: ModelFlags,
    /// A JSON list of messages with role and content; shows the chat that the template makes of them
    #[arg(long, env = "WARDROUND_MESSAGES", value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Ask for a `<think>` section where the template knows the switch
    #[arg(long, env = "WARDROUND_THINKING", requires = "messages")]
    thinking: bool,
}

impl Tokenize {
    /// Without --messages: a JSON string a line on stdin, a JSON list of ids a line on stdout. No special token is
    /// added.
    pub fn run(self) -> Result<(), Failure> {
        let checkpoint = self.model.find()?;
        let tokenizer = Tokenizer::load(checkpoint.tokenizer()?).map_err(PanelError::from)?;
        if let Some(path) = &self.messages {
            let chat = ChatTemplate::load(&checkpoint.directory).map_err(PanelError::from)?;
            let messages = read_messages(path)?;
            let text = chat
                .render(&messages, self.thinking)
                .map_err(PanelError::from)?;
            let tokens = tokenizer.encode(&text).map_err(PanelError::from)?;
            let shown = serde_json::json!({"text": text, "tokens": tokens});
            return Ok(console::say(shown.to_string())?);
        }
        for (number, line) in (1_usize..).zip(std::io::stdin().lines()) {
            let text: String = serde_json::from_str(&line?).map_err(|error| {
                Failure::usage(
                    format!("line {number} of stdin is no JSON string: {error}"),
                    r#"write each text in quotes on a line of its own, such as "two\nlines""#,
                )
            })?;
            let tokens = tokenizer.encode(&text).map_err(PanelError::from)?;
            console::say(serde_json::json!(tokens).to_string())?;
        }
        Ok(())
    }
}
