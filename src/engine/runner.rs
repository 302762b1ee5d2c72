//! Runs one step's shares through the decoder: rows from sequences, keys and values in pages, logits out.

use super::scheduler::Share;
use super::sequence::Sequence;
use crate::model::{Decoder, Scratch};
use crate::ops::{KvPages, Ops, Rows};

pub struct Runner {
    pub decoder: Decoder,
    pages: KvPages,
    scratch: Scratch,
    tokens: Vec<u32>,
    positions: Vec<u32>,
    sequences: Vec<u32>,
    logit_rows: Vec<usize>,
}

impl Runner {
    pub fn new(decoder: Decoder, pages: usize) -> Runner {
        let config = &decoder.config;
        Runner {
            pages: KvPages::new(
                config.layer_count(),
                pages,
                config.kv_heads,
                config.head_dim,
            ),
            decoder,
            scratch: Scratch::default(),
            tokens: Vec::new(),
            positions: Vec::new(),
            sequences: Vec::new(),
            logit_rows: Vec::new(),
        }
    }

    /// Computes the shares' rows. Gives the shares that reached their last token, each with a row of logits
    /// in [`Runner::logits`].
    pub fn forward(&mut self, ops: &Ops, running: &[Sequence], shares: &[Share]) -> Vec<Share> {
        self.tokens.clear();
        self.positions.clear();
        self.sequences.clear();
        self.logit_rows.clear();
        let mut tables = Vec::with_capacity(shares.len());
        let mut ready = Vec::new();
        for (table, share) in shares.iter().enumerate() {
            let sequence = &running[share.sequence];
            let range = sequence.computed..sequence.computed + share.rows;
            self.tokens
                .extend_from_slice(&sequence.tokens[range.clone()]);
            self.positions
                .extend(range.clone().map(|position| position as u32));
            self.sequences
                .extend(std::iter::repeat_n(table as u32, share.rows));
            tables.push(sequence.pages.as_slice());
            if range.end == sequence.tokens.len() {
                ready.push(*share);
                self.logit_rows.push(self.tokens.len() - 1);
            }
        }
        let rows = Rows {
            tokens: &self.tokens,
            positions: &self.positions,
            sequences: &self.sequences,
            tables: &tables,
        };
        self.decoder.forward(
            ops,
            rows,
            &self.logit_rows,
            &mut self.pages,
            &mut self.scratch,
        );
        ready
    }

    /// The rows of logits `[vocabulary]` of the shares that [`Runner::forward`] gave, in their order.
    pub fn logits(&mut self) -> impl Iterator<Item = &mut [f32]> {
        self.scratch.logits.rows_mut()
    }
}
