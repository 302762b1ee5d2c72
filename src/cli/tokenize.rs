//! `generate tokenize`: prints the token ids of texts, or the rendered text and the token ids of a chat.

use std::path::PathBuf;

use clap::Args;

use super::inspect::{ModelFlags, read_messages};
use crate::chat::{ChatTemplate, Prompt};
use crate::cli::exit::Failure;
use crate::console;
use crate::panel::PanelError;
use crate::tokenizer::Tokenizer;

#[derive(Debug, Args)]
pub struct Tokenize {
    #[command(flatten)]
    pub model: ModelFlags,
    /// File with a JSON list of messages, each with role and content; prints the rendered chat template and its token ids
    #[arg(long, value_name = "FILE")]
    messages: Option<PathBuf>,
    /// Enable thinking (`enable_thinking` of the chat template)
    #[arg(long, requires = "messages")]
    thinking: bool,
}

impl Tokenize {
    /// Without --messages: one JSON string per line on stdin, one JSON list of ids per line on stdout. No special token is
    /// added; special tokens in the text are recognised.
    pub fn run(self) -> Result<(), Failure> {
        let checkpoint = self.model.find()?;
        let tokenizer = Tokenizer::load(checkpoint.tokenizer()?).map_err(PanelError::from)?;
        if let Some(path) = &self.messages {
            let chat = ChatTemplate::load(&checkpoint.directory).map_err(PanelError::from)?;
            let messages = read_messages(path)?;
            let prompt = chat.prompt(&tokenizer, &messages, self.thinking);
            let Prompt { text, tokens } = prompt.map_err(PanelError::from)?;
            let shown = serde_json::json!({"text": text, "tokens": tokens});
            return Ok(console::say(shown.to_string())?);
        }
        for (number, line) in (1_usize..).zip(std::io::stdin().lines()) {
            let text: String = serde_json::from_str(&line?).map_err(|error| {
                Failure::usage(
                    format!("line {number} of stdin is not a JSON string: {error}"),
                    r#"write one quoted JSON string per line, such as "two\nlines""#,
                )
            })?;
            let tokens = tokenizer.encode(&text).map_err(PanelError::from)?;
            console::say(serde_json::json!(tokens).to_string())?;
        }
        Ok(())
    }
}
