//! Runs the scheduled rows of a step through the decoder: rows from sequences, keys and values in pages, logits out.

use super::EngineOptions;
use super::scheduler::ScheduledRows;
use super::sequence::Sequence;
use crate::model::{Cache, Decoder, Scratch};
use crate::ops::sampling::{Drawn, SamplingRequest, TokenLogprobs};
use crate::ops::{Backend, OpsError, Rows, StateRows};

pub struct Runner<B: Backend> {
    decoder: Decoder<B>,
    ops: B,
    cache: Cache<B>,
    scratch: Scratch<B>,
    tokens: Vec<u32>,
    positions: Vec<u32>,
    sequences: Vec<u32>,
    logit_rows: Vec<usize>,
    known: Vec<KnownRow>,
}

/// A row whose logits are wanted for the token after it, which is known. The rows of logits of these follow those of all tips.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownRow {
    /// Index into the running sequences.
    pub sequence: usize,
    /// Of the sequence.
    pub row: usize,
}

/// The end of a sequence, where its next token is sampled. The rows of logits of its draft, if it has one, follow that of its last token.
#[derive(Clone, Copy, Debug)]
pub struct Tip {
    /// Index into the running sequences.
    pub sequence: usize,
    /// A row of logits, behind this many tokens.
    pub row: usize,
    tokens: usize,
    /// Tokens of the draft up to there.
    drafted: usize,
}

impl Tip {
    /// Advances past the tokens that `sequence` got meanwhile; `None` where they differ from the draft or go beyond it.
    pub fn follow(self, sequence: &Sequence) -> Option<Tip> {
        let said = &sequence.tokens[self.tokens..];
        let draft = &sequence.draft[self.drafted..];
        draft.starts_with(said).then_some(Tip {
            row: self.row + said.len(),
            tokens: sequence.tokens.len(),
            drafted: self.drafted + said.len(),
            ..self
        })
    }
}

impl<B: Backend> Runner<B> {
    pub fn new(decoder: Decoder<B>, ops: B, options: EngineOptions) -> Result<Runner<B>, OpsError> {
        let config = &decoder.config;
        let EngineOptions { pages, slots, .. } = options;
        let mut cache = Cache::new(&ops, config, decoder.precision, pages, slots)?;
        if options.pages_at_start {
            cache.pages.iter_mut().for_each(|pool| ops.touch(pool));
        }
        Ok(Runner {
            cache,
            scratch: Scratch::new(&ops, config, options.step_limits())?,
            decoder,
            ops,
            tokens: Vec::new(),
            positions: Vec::new(),
            sequences: Vec::new(),
            logit_rows: Vec::new(),
            known: Vec::new(),
        })
    }

    /// Copies states from slots to others, one after another.
    pub fn copy_states(&mut self, copies: impl Iterator<Item = (u32, u32)>) {
        if let Some(states) = &mut self.cache.states {
            copies.for_each(|(from, to)| self.ops.copy_state(states, from, to));
        }
    }

    /// Computes the scheduled rows. Gives a tip for each sequence that reached its last token, in the same order.
    /// The machine may still be at work then.
    pub fn forward(&mut self, running: &[Sequence], scheduled: &[ScheduledRows]) -> Vec<Tip> {
        self.tokens.clear();
        self.positions.clear();
        self.sequences.clear();
        self.logit_rows.clear();
        self.known.clear();
        let mut known_rows = Vec::new();
        let mut tables = Vec::with_capacity(scheduled.len());
        let mut states = Vec::new();
        let mut tips = Vec::new();
        for (table, part) in scheduled.iter().enumerate() {
            let sequence = &running[part.sequence];
            let (known, drafted) = (sequence.tokens.len(), sequence.draft.len());
            let range = sequence.computed..sequence.computed + part.rows;
            for row in sequence.scores.before(range.end) {
                known_rows.push(self.tokens.len() + row - range.start);
                self.known.push(KnownRow { sequence: part.sequence, row });
            }
            self.tokens.extend_from_slice(&sequence.tokens[range.start..range.end - drafted]);
            self.tokens.extend_from_slice(&sequence.draft);
            self.positions.extend(range.clone().map(|position| position as u32));
            self.sequences.extend(std::iter::repeat_n(table as u32, part.rows));
            tables.push(sequence.pages.as_slice());
            states.extend(sequence.slot.map(|slot| StateRows { slot, drafted: drafted as u32 }));
            if range.end == known + drafted && sequence.ended.is_none() {
                tips.push(Tip {
                    sequence: part.sequence,
                    row: self.logit_rows.len(),
                    tokens: known,
                    drafted: 0,
                });
                let end = self.tokens.len();
                self.logit_rows.extend(end - drafted - 1..end);
            }
        }
        self.logit_rows.extend(known_rows);
        let rows = Rows {
            tokens: &self.tokens,
            positions: &self.positions,
            sequences: &self.sequences,
            segments: &[],
            tables: &tables,
            states: &states,
        };
        self.decoder.forward(&self.ops, rows, &self.logit_rows, &mut self.cache, &mut self.scratch);
        tips
    }

    /// Rows of the last step that gave logits.
    pub fn logit_rows(&self) -> usize {
        self.logit_rows.len()
    }

    /// The known rows of the last step that gave logits, each sequence's in ascending order.
    pub fn known(&self) -> &[KnownRow] {
        &self.known
    }

    /// The log-probabilities of the tokens after them, each with so many of the likeliest.
    pub fn score(&mut self, wanted: &[(u32, usize)]) -> Result<Vec<TokenLogprobs>, OpsError> {
        let first = self.logit_rows.len() - self.known.len();
        let (logits, stage) = self.scratch.logits();
        self.ops.score(logits, first, wanted, stage)
    }

    /// Samples each of the first rows of logits that has a request; the others stay as they are.
    pub fn draw(&mut self, requests: &[Option<SamplingRequest>]) -> Result<Vec<Drawn>, OpsError> {
        let (logits, stage) = self.scratch.logits();
        self.ops.draw(logits, requests, stage)
    }
}
