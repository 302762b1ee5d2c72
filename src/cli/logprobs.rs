//! `logprobs`: what a model expects after each of some token ids.

use clap::Args;
use serde::Serialize;

use super::inspect::ModelFlags;
use super::options::ComputeFlags;
use crate::console;
use crate::engine::{EngineError, Sampler};
use crate::exit::Failure;
use crate::model::{Config, Decoder, ModelError, Scratch};
use crate::ops::{KvPages, Ops, PAGE, Rows};
use crate::panel::PanelError;

/// Tokens that are given of each position without --full.
const TOP: usize = 10;
/// Positions whose logits are computed at a time.
const ROWS: usize = 16;

#[derive(Debug, Args)]
pub struct Logprobs {
    #[command(flatten)]
    model: ModelFlags,
    /// The token ids
    #[arg(
        long,
        env = "WARDROUND_TOKENS",
        value_delimiter = ',',
        required = true,
        value_name = "ID,ID"
    )]
    tokens: Vec<u32>,
    /// Give every logit instead of the ten greatest log-probabilities
    #[arg(long, env = "WARDROUND_FULL")]
    full: bool,
    #[command(flatten)]
    compute: ComputeFlags,
}

/// What is printed: a row for each token, about the one after it; `logits` or `logprobs`.
#[derive(Serialize)]
struct Shown<'a> {
    tokens: &'a [u32],
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logits: Vec<Vec<f32>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    logprobs: Vec<Vec<Likely>>,
}

#[derive(Serialize)]
struct Likely {
    token: u32,
    logprob: f32,
}

impl Logprobs {
    pub fn run(self) -> Result<(), Failure> {
        let checkpoint = self.model.find()?;
        let config = Config::read(&checkpoint.files.config).map_err(ModelError::from)?;
        refuse_unknown(&self.tokens, &config)?;
        let weights = &checkpoint.files.weights;
        let decoder = {
            let (wanted, quantisation) = self.compute.weights();
            Decoder::load(config, weights, wanted, quantisation, self.tokens.len())?
        };
        let ops = self.compute.ops()?;
        let mut sampler = Sampler::default();
        let mut shown = Shown {
            tokens: &self.tokens,
            logits: Vec::new(),
            logprobs: Vec::new(),
        };
        each_position(&decoder, &ops, &self.tokens, |logits| match self.full {
            true => shown.logits.push(logits.to_vec()),
            false => {
                let top = sampler.logprobs(&ops, logits, 0, TOP).top.into_iter();
                let likely = top.map(|(token, logprob)| Likely { token, logprob });
                shown.logprobs.push(likely.collect());
            }
        });
        let text = serde_json::to_string(&shown).map_err(std::io::Error::from)?;
        Ok(console::say(text)?)
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

/// Calls `see` with the logits after each of `tokens`, in order.
fn each_position(decoder: &Decoder, ops: &Ops, tokens: &[u32], mut see: impl FnMut(&[f32])) {
    let config = &decoder.config;
    let mut pages = KvPages::new(
        config.layer_count(),
        tokens.len().div_ceil(PAGE),
        config.kv_heads,
        config.head_dim,
    );
    let table: Vec<u32> = (0..pages.pages() as u32).collect();
    let mut scratch = Scratch::default();
    for (chunk, start) in tokens.chunks(ROWS).zip((0..).step_by(ROWS)) {
        let positions: Vec<u32> = (start..).take(chunk.len()).collect();
        let sequences = vec![0; chunk.len()];
        let rows = Rows {
            tokens: chunk,
            positions: &positions,
            sequences: &sequences,
            tables: &[&table],
        };
        let all: Vec<usize> = (0..chunk.len()).collect();
        ops.run(|| decoder.forward(ops, rows, &all, &mut pages, &mut scratch));
        for logits in scratch.logits.rows_mut() {
            see(logits);
        }
    }
}
