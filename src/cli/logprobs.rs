//! `generate logprobs`: prints a model's next-token log-probabilities, or its logits, for a token sequence.

use std::path::PathBuf;

use clap::Args;
use serde::Serialize;

use super::inspect::ModelFlags;
use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;
use crate::console;
use crate::engine::EngineError;
use crate::experiment::hardware::Compute;
use crate::model::{Config, Decoder, ModelError, Scratch, precision_of};
use crate::ops::sampling::{TokenLogprobs, are_sound};
use crate::ops::{Backend, Device, PAGE, Precision, Rows, StepLimits};
use crate::panel::PanelError;

/// The number of tokens printed for each position without --full.
const TOP: usize = 10;

#[derive(Debug, Args)]
pub struct Logprobs {
    #[command(flatten)]
    model: ModelFlags,
    /// Token ids
    #[arg(long, value_delimiter = ',', required = true, value_name = "ID,ID")]
    tokens: Vec<u32>,
    /// Print all logits instead of the ten greatest log-probabilities and those of the next tokens
    #[arg(long)]
    full: bool,
    /// Positions computed per step; changes no result without --fast
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=4096))]
    rows: u16,
    #[command(flatten)]
    compute: Compute,
}

/// The results for each token: logits with --full, else log-probabilities.
#[derive(Default)]
struct Computed {
    logits: Vec<Vec<f32>>,
    /// Those of the next token and of the likeliest ones.
    logprobs: Vec<TokenLogprobs>,
    /// The first position whose logits are no numbers.
    broken: Option<usize>,
}

/// The printed object. Each list has a row for each token about the token after it: `logits`, or `logprobs` and `next`.
#[derive(Serialize)]
struct Shown<'a> {
    tokens: &'a [u32],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logits: Vec<Vec<f32>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logprobs: Vec<Vec<Likely>>,
    /// The log-probabilities of the second token and those after it; their sum is the log-likelihood of the text.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    next: Vec<Next>,
}

#[derive(Serialize)]
struct Next {
    token: u32,
    logprob: f32,
    /// 1 for the likeliest token.
    rank: u32,
}

#[derive(Serialize)]
struct Likely {
    token: u32,
    logprob: f32,
}

impl Logprobs {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        given.enter()?;
        let checkpoint = self.model.find()?;
        let config = Config::read(&checkpoint.files.config)?;
        refuse_unknown(&self.tokens, &config)?;
        let device = self.compute.one_device()?;
        let files = &checkpoint.files.weights;
        let precision = precision_of(&config, files, self.compute.precision(), device.machine())?;
        let computed = match device {
            Device::Cpu(cpu) => self.rows(cpu, config, files, precision)?,
            Device::Cuda(gpu) => self.rows(gpu.for_engine()?, config, files, precision)?,
            Device::Metal(gpu) => self.rows(gpu.for_engine()?, config, files, precision)?,
        };
        if let Some(position) = computed.broken {
            let model = checkpoint.name.clone();
            return Err(EngineError::NotFinite { model, position }.into());
        }
        let mut shown = Shown {
            tokens: &self.tokens,
            logits: computed.logits,
            logprobs: Vec::new(),
            next: Vec::new(),
        };
        let following = self.tokens.iter().skip(1).copied().map(Some).chain([None]);
        for (row, following) in computed.logprobs.into_iter().zip(following) {
            let likely = |(token, logprob)| Likely { token, logprob };
            shown.logprobs.push(row.top.into_iter().map(likely).collect());
            let next = |token| Next { token, logprob: row.chosen, rank: row.rank };
            shown.next.extend(following.map(next));
        }
        let text = serde_json::to_string(&shown).map_err(std::io::Error::from)?;
        Ok(console::say(text)?)
    }

    /// Runs the model over the tokens.
    fn rows<B: Backend>(
        &self,
        ops: B,
        config: Config,
        files: &[PathBuf],
        precision: Precision,
    ) -> Result<Computed, ModelError> {
        let tokens = &self.tokens;
        let decoder = Decoder::load(&ops, config, files, precision, tokens.len())?;
        let config = &decoder.config;
        let mut pages =
            ops.pages(config.page_shape(), precision.kv, tokens.len().div_ceil(PAGE))?;
        let table: Vec<u32> = (0..tokens.len().div_ceil(PAGE) as u32).collect();
        let at_once = usize::from(self.rows).min(tokens.len());
        let limits = StepLimits { rows: at_once, logit_rows: at_once, positions: tokens.len() };
        let mut scratch = Scratch::new(&ops, config, limits)?;
        let mut computed = Computed::default();
        for (chunk, start) in tokens.chunks(at_once).zip((0..).step_by(at_once)) {
            let positions: Vec<u32> = (start..).take(chunk.len()).collect();
            let sequences = vec![0; chunk.len()];
            let rows = Rows {
                tokens: chunk,
                positions: &positions,
                sequences: &sequences,
                segments: &[],
                tables: &[&table],
            };
            let wanted: Vec<usize> = (0..chunk.len()).collect();
            ops.run(|| decoder.forward(&ops, rows, &wanted, &mut pages, &mut scratch));
            let (logits, stage) = scratch.logits();
            if self.full {
                let logits = ops.read(logits, chunk.len())?;
                let mut rows = logits.chunks(config.vocab_size);
                let broken = rows.position(|row| !are_sound(row));
                computed.broken = computed.broken.or(broken.map(|row| start as usize + row));
                computed.logits.extend(logits.chunks(config.vocab_size).map(<[f32]>::to_vec));
                continue;
            }
            // The last token has no next one.
            let following = tokens[start as usize + 1..].iter().copied().chain([0]);
            let following: Vec<(u32, usize)> =
                following.take(chunk.len()).map(|token| (token, TOP)).collect();
            let scored = ops.run(|| ops.score(logits, 0, &following, stage));
            let scored = scored?;
            let broken = scored.iter().position(|row| row.chosen.is_nan());
            computed.broken = computed.broken.or(broken.map(|row| start as usize + row));
            computed.logprobs.extend(scored);
        }
        Ok(computed)
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
