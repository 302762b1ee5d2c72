//! `generate logits`: prints a model's next-token logits for a token sequence.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::generate::ModelFlags;
use crate::cli::exit::Failure;
use crate::console;
use crate::engine::EngineError;
use crate::experiment::hardware::Compute;
use crate::model::{Config, Decoder, ModelError, Scratch, precision_of};
use crate::ops::sampling::are_sound;
use crate::ops::{Backend, Device, PAGE, Precision, Rows, StepLimits};
use crate::panel::PanelError;

#[derive(Debug, Args)]
pub struct Logits {
    #[command(flatten)]
    model: ModelFlags,
    /// Token ids
    #[arg(long, value_delimiter = ',', required = true, value_name = "ID,ID")]
    tokens: Vec<u32>,
    /// Positions computed per step; changes no result without --fast
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    rows: u16,
    #[command(flatten)]
    compute: Compute,
}

/// The printed object. A row of logits is about the token after its own.
#[derive(Serialize)]
struct Shown<'a> {
    tokens: &'a [u32],
    logits: Vec<Vec<f32>>,
}

impl Logits {
    pub fn run(self) -> Result<(), Failure> {
        let checkpoint = self.model.find()?;
        let config = Config::read(&checkpoint.files.config)?;
        refuse_unknown(&self.tokens, &config)?;
        let device = self.compute.one_device()?;
        let files = &checkpoint.files.weights;
        let precision = precision_of(&config, files, self.compute.precision(), device.machine())?;
        let logits = match device {
            Device::Cpu(cpu) => self.logits(cpu, config, files, precision)?,
            Device::Cuda(gpu) => self.logits(gpu.for_engine()?, config, files, precision)?,
            Device::Candle(candle) => self.logits(candle, config, files, precision)?,
        };
        if let Some(position) = logits.iter().position(|row| !are_sound(row)) {
            return Err(EngineError::NotFinite { model: checkpoint.name, position }.into());
        }
        let shown = serde_json::to_string(&Shown { tokens: &self.tokens, logits });
        Ok(console::say(shown.map_err(std::io::Error::from)?)?)
    }

    /// Runs the model over the tokens.
    fn logits<B: Backend>(
        &self,
        ops: B,
        config: Config,
        files: &[PathBuf],
        precision: Precision,
    ) -> Result<Vec<Vec<f32>>, ModelError> {
        let tokens = &self.tokens;
        let decoder = Decoder::load(&ops, config, files, precision, tokens.len())?;
        let config = &decoder.config;
        let pages = tokens.len().div_ceil(PAGE);
        let table: Vec<u32> = (0..pages as u32).collect();
        let mut pages = ops.pages(config.page_shape(), precision.kv, pages)?;
        let at_once = usize::from(self.rows).min(tokens.len());
        let limits = StepLimits { rows: at_once, logit_rows: at_once, positions: tokens.len() };
        let mut scratch = Scratch::new(&ops, config, limits)?;
        let mut all = Vec::new();
        for (chunk, start) in tokens.chunks(at_once).zip((0..).step_by(at_once)) {
            let positions: Vec<u32> = (start..).take(chunk.len()).collect();
            let rows = Rows {
                tokens: chunk,
                positions: &positions,
                sequences: &vec![0; chunk.len()],
                segments: &[],
                tables: &[&table],
            };
            let wanted: Vec<usize> = (0..chunk.len()).collect();
            ops.run(|| decoder.forward(&ops, rows, &wanted, &mut pages, &mut scratch));
            let logits = ops.read(scratch.logits().0, chunk.len())?;
            all.extend(logits.chunks(config.vocab_size).map(<[f32]>::to_vec));
        }
        Ok(all)
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
