//! `generate`: prints one completion of one model, or logits.

use clap::Args;
use serde::Serialize;

use super::options::HubFlags;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::engine::{EngineError, Request, Stop};
use crate::experiment::hardware::{Compute, Hardware};
use crate::experiment::models::Models;
use crate::hub::{HubOptions, resolve};
use crate::model::{Config, Probe, compute_logits, precision_of};
use crate::ops::sampling::are_sound;
use crate::panel::{PanelError, SamplingChoice};
use crate::record::Message;

#[derive(Debug, Args)]
pub struct Generate {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, help_heading = "Model", value_name = "MODEL")]
    model: String,
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
    /// Print the logits after each of --tokens, as JSON, and generate nothing
    #[arg(long, requires = "tokens")]
    logits: bool,
    /// Positions computed per step for --logits; changes results on candle alone
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    rows: u16,
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

#[derive(Serialize)]
struct Shown<'a> {
    tokens: &'a [u32],
    logits: Vec<Vec<f32>>,
}

impl Generate {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let hub = self.hub.options(false)?;
        if let (true, Some(tokens)) = (self.logits, &self.input.tokens) {
            return self.tell_logits(tokens, &hub);
        }
        let (model, compute) = (&self.model, self.compute);
        let hardware = Hardware { compute, max_batch: Some(1), ..Hardware::default() };
        let models = Models::describe([model], &hardware, &hub, |_| Ok(Vec::new()))?;
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

    /// Prints an object of JSON with the logits after each token: a row is about the token after its own.
    fn tell_logits(&self, tokens: &[u32], hub: &HubOptions) -> Result<(), Failure> {
        let checkpoint = resolve(&self.model, hub)?;
        let config = Config::read(&checkpoint.files.config)?;
        let (prompt, context) = (tokens.len(), config.max_position_embeddings);
        if prompt > context {
            return Err(PanelError::PromptTooLong { prompt, context }.into());
        }
        let vocabulary = config.vocab_size;
        if let Some(&id) = tokens.iter().find(|id| **id as usize >= vocabulary) {
            return Err(EngineError::UnknownToken { id, vocabulary }.into());
        }
        let (device, files) = (self.compute.on.one_device()?, &checkpoint.files.weights);
        let precision = precision_of(&config, files, self.compute.precision(), device.machine())?;
        let mut sequences = [Probe::new(tokens.to_vec(), 0, 0)];
        compute_logits(&device, &config, files, precision, self.rows.into(), &mut sequences)?;
        let [Probe { logits, .. }] = sequences;
        if let Some(position) = logits.iter().position(|row| !are_sound(row)) {
            return Err(EngineError::NotFinite { model: checkpoint.name, position }.into());
        }
        let shown = serde_json::to_string(&Shown { tokens, logits });
        Ok(console::say(shown.map_err(std::io::Error::from)?)?)
    }
}
