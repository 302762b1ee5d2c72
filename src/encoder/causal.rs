//! Our decoder behind an encoder or a reranker: the states of all tokens or of the last, or the last one's logits.

use super::EncoderError;
use super::folder::Folder;
use super::network::{Network, Take, steps};
use super::tokens::Sequence;
use crate::hub::EncoderOutput;
use crate::model::{Config, Decoder, Scratch};
use crate::ops::{Backend, PageShape, Precision, StepLimits};

/// A decoder on one machine.
pub(super) struct DecoderNetwork<B: Backend> {
    pub(super) ops: B,
    pub(super) decoder: Decoder<B>,
    /// Tokens of a text at most.
    pub(super) limit: usize,
    pub(super) output: EncoderOutput,
}

/// A decoder for texts of at most `limit` tokens.
///
/// # Errors
/// Weights that are missing or do not fit the config; a machine without room.
pub(super) fn load_decoder<B: Backend>(
    ops: &B,
    folder: &Folder,
    config: Config,
    precision: Precision,
    limit: usize,
) -> Result<Decoder<B>, EncoderError> {
    // Files without a language model's head are read as they are; rerankers have theirs tied.
    let config = Config { tied_embeddings: true, ..config };
    Ok(Decoder::load(ops, config, &folder.weight_files()?, precision, limit)?)
}

impl<B: Backend> Network for DecoderNetwork<B> {
    fn run(&self, texts: &[Sequence], take: &Take<'_>) -> Result<Vec<Vec<f64>>, EncoderError> {
        let steps = steps(texts, B::MACHINE);
        let Some(largest) = steps.largest() else { return Ok(Vec::new()) };
        let (ops, decoder) = (&self.ops, &self.decoder);
        let limits =
            StepLimits { rows: largest.rows, logit_rows: largest.rows, positions: self.limit };
        let mut scratch = Scratch::new(ops, &decoder.config, limits)?;
        let shape = PageShape { layers: 1, ..decoder.config.page_shape() };
        let mut pages = ops.pages(shape, decoder.precision().kv, largest.pages)?;
        let is_mean = self.output == EncoderOutput::Mean;
        let wants_logits = self.output == EncoderOutput::YesNo;
        let rows = |text: &Sequence| if is_mean { text.tokens.len() } else { 1 };
        steps.run(texts, take, rows, |packed| {
            let chosen = if is_mean { (0..packed.rows()).collect() } else { packed.last.clone() };
            let states = packed.with_rows(|rows| {
                ops.run(|| decoder.read(ops, rows, &chosen, wants_logits, &mut pages, &mut scratch))
            });
            Ok(states?)
        })
    }
}
