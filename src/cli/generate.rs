//! `generate`: prints one completion of one model, or under it logits.

use clap::{Args, Subcommand};

use super::logits::Logits;
use super::options::HubFlags;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::engine::{Request, Stop};
use crate::experiment::hardware::{Compute, Hardware};
use crate::experiment::models::Models;
use crate::panel::{PanelError, SamplingChoice};
use crate::record::Message;

// A completion, unless the verb below it is asked for.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Generate {
    #[command(subcommand)]
    verb: Option<Other>,
    #[command(flatten)]
    one: Box<OneCompletion>,
}

#[derive(Debug, Subcommand)]
enum Other {
    /// Print all next-token logits for a token sequence
    Logits(Logits),
}

impl Generate {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        match self.verb {
            Some(Other::Logits(verb)) => verb.run(),
            None => self.one.run(),
        }
    }
}

#[derive(Debug, Args)]
pub struct OneCompletion {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, help_heading = "Model", value_name = "MODEL", required = true)]
    model: Option<String>,
    #[command(flatten)]
    input: Input,
    /// Maximum number of tokens to generate
    #[arg(long, help_heading = "Decoding", default_value_t = 512, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: u32,
    #[command(flatten)]
    sampling: SamplingChoice,
    /// Random seed
    #[arg(long, help_heading = "Decoding", default_value_t = 42, value_name = "S")]
    seed: u64,
    /// Print a JSON object with text, tokens, usage and finish_reason
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    hub: HubFlags,
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct Input {
    /// User message; `-` reads stdin
    #[arg(long, help_heading = "Input", value_name = "TEXT")]
    prompt: Option<String>,
    /// Token ids of the prompt; no chat template is applied
    #[arg(long, help_heading = "Input", value_delimiter = ',', value_name = "ID,ID")]
    tokens: Option<Vec<u32>>,
}

impl OneCompletion {
    fn run(self) -> Result<(), Failure> {
        // Absent only beside a verb that has one of its own.
        let model = self.model.unwrap_or_default();
        let hardware =
            Hardware { compute: self.compute, max_batch: Some(1), ..Hardware::default() };
        let hub = self.hub.options(false)?;
        let models = Models::describe([&model], &hardware, &hub, |_| Ok(Vec::new()))?;
        let Some(description) = models.descriptions.first() else {
            return Err(Failure::usage(
                format!("{model} is an endpoint, and `generate` runs a model of this machine"),
                "ask the endpoint itself",
            ));
        };
        let tokens = match (self.input.tokens, self.input.prompt.as_deref()) {
            (Some(tokens), _) => tokens,
            (None, Some("-")) => {
                let text = std::io::read_to_string(std::io::stdin())?;
                description.tokenise(&[Message::new("user", text)], false)?
            }
            (None, text) => {
                description.tokenise(&[Message::new("user", text.unwrap_or_default())], false)?
            }
        };
        let context = description.context;
        let room = context.saturating_sub(tokens.len());
        if room == 0 {
            return Err(PanelError::PromptTooLong { prompt: tokens.len(), context }.into());
        }
        let generation = &description.generation;
        let request = Request {
            max_tokens: room.min(self.max_tokens as usize),
            sampling: self.sampling.over(generation.sampling),
            seed: self.seed,
            stop: Stop { ids: generation.eos_ids.clone(), ..Stop::default() },
            pieces: !self.json,
            tokens,
            ..Request::default()
        };
        let backbone = models.start()?.backbones.swap_remove(0);
        let mut written = Ok(());
        let completion = backbone.engine.submit(request)?.wait_with(|piece| {
            if written.is_ok() {
                written = console::write(piece);
            }
        })?;
        written?;
        let shown = match self.json {
            false => String::new(),
            true => serde_json::json!({
                "text": completion.text,
                "tokens": completion.tokens,
                "finish_reason": completion.finish_reason,
                "usage": completion.usage,
            })
            .to_string(),
        };
        Ok(console::say(shown)?)
    }
}
