//! Shared by `generate`, `logprobs` and `tokenize`: the model, and the input text.

use std::path::Path;

use clap::Args;

use super::options::HubFlags;
use crate::cli::exit::Failure;
use crate::hub::{Checkpoint, resolve};
use crate::outside;
use crate::record::Message;

#[derive(Debug, Args)]
pub struct ModelFlags {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, help_heading = "Model", value_name = "MODEL")]
    model: String,
    #[command(flatten)]
    hub: HubFlags,
}

impl ModelFlags {
    pub fn find(&self) -> Result<Checkpoint, Failure> {
        Ok(resolve(&self.model, &self.hub.options(false)?)?)
    }
}

/// The text itself, or stdin's for `-`.
pub fn read_text(text: &str) -> Result<String, Failure> {
    match text {
        "-" => Ok(std::io::read_to_string(std::io::stdin())?),
        text => Ok(text.to_owned()),
    }
}

/// A file that holds a JSON list of messages.
pub fn read_messages(path: &Path) -> Result<Vec<Message>, Failure> {
    let text = outside::given_text(path)?;
    serde_json::from_str(&text).map_err(|error| {
        Failure::usage(
            format!("{} is not a list of messages: {error}", path.display()),
            r#"write [{"role": "user", "content": "…"}]"#,
        )
    })
}
