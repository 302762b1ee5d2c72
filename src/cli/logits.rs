//! `generate logits`: prints a model's next-token logits for a token sequence.

use clap::Args;
use serde::Serialize;

use super::options::HubFlags;
use crate::cli::exit::Failure;
use crate::console;
use crate::engine::EngineError;
use crate::experiment::hardware::Compute;
use crate::hub::resolve;
use crate::model::{Config, Probe, compute_logits, precision_of};
use crate::ops::sampling::are_sound;
use crate::panel::PanelError;

#[derive(Debug, Args)]
pub struct Logits {
    /// Model: a card's name, a hub id or a directory
    #[arg(long, help_heading = "Model", value_name = "MODEL")]
    model: String,
    /// Token ids
    #[arg(long, value_delimiter = ',', required = true, value_name = "ID,ID")]
    tokens: Vec<u32>,
    /// Positions computed per step; changes results on candle alone
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    rows: u16,
    #[command(flatten)]
    compute: Compute,
    #[command(flatten)]
    hub: HubFlags,
}

/// The printed object. A row of logits is about the token after its own.
#[derive(Serialize)]
struct Shown<'a> {
    tokens: &'a [u32],
    logits: Vec<Vec<f32>>,
}

impl Logits {
    pub fn run(self) -> Result<(), Failure> {
        let checkpoint = resolve(&self.model, &self.hub.options(false)?)?;
        let config = Config::read(&checkpoint.files.config)?;
        refuse_unknown(&self.tokens, &config)?;
        let device = self.compute.on.one_device()?;
        let files = &checkpoint.files.weights;
        let precision = precision_of(&config, files, self.compute.precision(), device.machine())?;
        let rows = usize::from(self.rows);
        let mut sequences = [Probe::new(self.tokens.clone(), 0, 0)];
        compute_logits(&device, &config, files, precision, rows, &mut sequences)?;
        let [Probe { logits, .. }] = sequences;
        if let Some(position) = logits.iter().position(|row| !are_sound(row)) {
            return Err(EngineError::NotFinite { model: checkpoint.name, position }.into());
        }
        let shown = serde_json::to_string(&Shown { tokens: &self.tokens, logits });
        Ok(console::say(shown.map_err(std::io::Error::from)?)?)
    }
}

fn refuse_unknown(tokens: &[u32], config: &Config) -> Result<(), Failure> {
    let (prompt, context) = (tokens.len(), config.max_position_embeddings);
    if prompt > context {
        return Err(PanelError::PromptTooLong { prompt, context }.into());
    }
    let vocabulary = config.vocab_size;
    match tokens.iter().find(|id| **id as usize >= vocabulary) {
        Some(&id) => Err(EngineError::UnknownToken { id, vocabulary }.into()),
        None => Ok(()),
    }
}
