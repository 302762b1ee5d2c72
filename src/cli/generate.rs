//! `generate`: prints one completion of one model, or under it logits.

use std::sync::Arc;

use clap::{Args, Subcommand};

use super::logits::Logits;
use super::options::HubFlags;
use crate::chat::{ChatTemplate, Message};
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::engine::{EngineOptions, Request, Stop};
use crate::experiment::hardware::{Compute, DEFAULT_CONTEXT};
use crate::generation::Generation;
use crate::hub::{Checkpoint, resolve};
use crate::local_model::Start;
use crate::model::{Config, Footprint, precision_of};
use crate::ops::PAGE;
use crate::panel::memory::expect_room_for;
use crate::panel::{PanelError, SamplingChoice};
use crate::tokenizer::Tokenizer;

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

#[derive(Debug, Args)]
pub struct OneCompletion {
    #[command(flatten)]
    model: ModelFlags,
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
        let checkpoint = self.model.find()?;
        let (files, directory) = (&checkpoint.files, &checkpoint.directory);
        let tokenizer = Arc::new(Tokenizer::load(checkpoint.tokenizer()?)?);
        // Token ids may be of a model without a template.
        let chat = ChatTemplate::load(directory);
        let (tokens, chat) = match (self.input.tokens, self.input.prompt.as_deref()) {
            (Some(tokens), _) => (tokens, chat.ok()),
            (None, prompt) => {
                let text = match prompt.unwrap_or_default() {
                    "-" => std::io::read_to_string(std::io::stdin())?,
                    text => text.to_owned(),
                };
                let chat = chat?;
                let prompt = chat.prompt(&tokenizer, &[Message::new("user", text)], false)?;
                (prompt.tokens, Some(chat))
            }
        };
        let config = Config::read(&files.config)?;
        let generation =
            Generation::of_checkpoint(directory, files, &config, &tokenizer, chat.as_ref())?;
        let context = (DEFAULT_CONTEXT as usize).min(config.max_position_embeddings);
        let room = context.saturating_sub(tokens.len());
        if room == 0 {
            return Err(PanelError::PromptTooLong { prompt: tokens.len(), context }.into());
        }
        let request = Request {
            max_tokens: room.min(self.max_tokens as usize),
            sampling: self.sampling.over(generation.sampling),
            seed: self.seed,
            stop: Stop { ids: generation.eos_ids.clone(), ..Stop::default() },
            pieces: !self.json,
            tokens,
            ..Request::default()
        };
        let device = self.compute.one_device()?;
        let machine = device.machine();
        let options = EngineOptions {
            pages: (request.tokens.len() + request.max_tokens).div_ceil(PAGE),
            max_batch: 1,
            prefill_rows: machine.prefill_rows(),
            context,
            draft: 0,
            known_logit_rows: 0,
            pages_at_start: false,
        };
        let precision = precision_of(&config, &files.weights, self.compute.precision(), machine)?;
        let name = &checkpoint.name;
        let footprint =
            Footprint::of(&config, precision, machine, options.pages, options.step_limits());
        expect_room_for(name, footprint, &device)?;
        let start = Start {
            name,
            config: &config,
            weights: &files.weights,
            precision,
            tokenizer: &tokenizer,
            generation: &generation,
            options,
        };
        let (engine, warnings) = start.on(&device)?;
        for warning in warnings {
            console::note(format!("warning: {name}: {warning}"));
        }
        let mut written = Ok(());
        let completion = engine.submit(request)?.wait_with(|piece| {
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
