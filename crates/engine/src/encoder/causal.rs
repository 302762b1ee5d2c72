//! Our decoder behind an encoder or a reranker: the states of all tokens or of the last, or the last one's logits.

use super::EncoderError;
use super::card::EncoderOutput;
use super::folder::Folder;
use super::network::{Network, Spare, Take, steps};
use super::tokens::Sequence;
use crate::model::{Config, Decoder, Scratch};
use crate::ops::{Backend, PageShape, Precision, StepLimits};

/// Texts a step that give logits, at most: each takes a row as wide as the vocabulary.
const MOST_LOGIT_ROWS: usize = 64;

/// Rows of logits that a model of this output computes in a step, at most.
pub(super) fn logit_rows(output: EncoderOutput) -> usize {
    match output {
        EncoderOutput::YesNo => MOST_LOGIT_ROWS,
        _ => 0,
    }
}

pub(super) struct DecoderNetwork<B: Backend> {
    pub(super) ops: B,
    pub(super) decoder: Decoder<B>,
    /// Tokens of a text at most.
    pub(super) limit: usize,
    pub(super) output: EncoderOutput,
    pub(super) spare: Spare<(Scratch<B>, B::Pages)>,
}

/// A decoder for texts of at most `limit` tokens.
pub(super) fn load_decoder<B: Backend>(
    ops: &B,
    folder: &Folder,
    config: Config,
    output: EncoderOutput,
    precision: Precision,
    limit: usize,
) -> Result<Decoder<B>, EncoderError> {
    // Files without a language model's head are read as they are; rerankers have theirs tied.
    let config = Config { tied_embeddings: true, ..config };
    let files = folder.weight_files()?;
    let wants_head = output == EncoderOutput::YesNo;
    Ok(Decoder::load_parts(ops, config, &files, precision, limit, wants_head)?)
}

impl<B: Backend> Network for DecoderNetwork<B> {
    fn run(&self, texts: &[Sequence], take: &Take<'_>) -> Result<Vec<Vec<f64>>, EncoderError> {
        let wants_logits = self.output == EncoderOutput::YesNo;
        let most = if wants_logits { MOST_LOGIT_ROWS } else { usize::MAX };
        let steps = steps(texts, B::MACHINE, most);
        let Some(largest) = steps.largest() else { return Ok(Vec::new()) };
        let (ops, decoder) = (&self.ops, &self.decoder);
        let mut room = self.spare.take(largest, |size| {
            let limits =
                StepLimits { rows: size.rows, logit_rows: size.rows, positions: self.limit };
            let logit_rows = logit_rows(self.output).min(size.rows);
            let scratch = Scratch::with_logits(ops, &decoder.config, limits, logit_rows)?;
            let shape = PageShape { layers: 1, ..decoder.config.page_shape() };
            Ok((scratch, ops.pages(shape, decoder.precision().kv, size.pages)?))
        })?;
        let (scratch, pages) = &mut room.one;
        let is_mean = self.output == EncoderOutput::Mean;
        let rows = |text: &Sequence| if is_mean { text.tokens.len() } else { 1 };
        let taken = steps.run(texts, take, rows, |packed| {
            let chosen = if is_mean { (0..packed.rows()).collect() } else { packed.last.clone() };
            let states = packed.with_rows(|rows| {
                ops.run(|| decoder.read(ops, rows, &chosen, wants_logits, pages, scratch))
            });
            Ok(states?)
        });
        self.spare.keep(room);
        taken
    }
}
