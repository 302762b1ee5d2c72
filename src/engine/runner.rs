//! Runs one step's shares through the decoder: rows from sequences, keys and values in pages, logits out.

use super::EngineOptions;
use super::scheduler::Share;
use super::sequence::Sequence;
use crate::model::{Decoder, Scratch};
use crate::ops::sampling::{Drawn, Order};
use crate::ops::{Backend, OpsError, Rows};

pub struct Runner<B: Backend> {
    decoder: Decoder<B>,
    ops: B,
    pages: B::Pages,
    scratch: Scratch<B>,
    tokens: Vec<u32>,
    positions: Vec<u32>,
    sequences: Vec<u32>,
    logit_rows: Vec<usize>,
}

impl<B: Backend> Runner<B> {
    /// # Errors
    /// When the machine has no room for pages and scratch.
    pub fn new(decoder: Decoder<B>, ops: B, options: EngineOptions) -> Result<Runner<B>, OpsError> {
        let config = &decoder.config;
        Ok(Runner {
            pages: ops.pages(config.page_shape(), options.pages)?,
            scratch: Scratch::new(&ops, config, options.sizes())?,
            decoder,
            ops,
            tokens: Vec::new(),
            positions: Vec::new(),
            sequences: Vec::new(),
            logit_rows: Vec::new(),
        })
    }

    /// Computes the shares' rows. Gives the shares that reached their last token, each with a row of logits
    /// to draw from. The machine may still be at work then.
    pub fn forward(&mut self, running: &[Sequence], shares: &[Share]) -> Vec<Share> {
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
            &self.ops,
            rows,
            &self.logit_rows,
            &mut self.pages,
            &mut self.scratch,
        );
        ready
    }

    /// A draw for each share that [`Runner::forward`] gave, in their order.
    ///
    /// # Errors
    /// What went wrong on the machine since the last draw.
    pub fn draw(&mut self, orders: &[Option<Order>]) -> Result<Vec<Drawn>, OpsError> {
        let (logits, stage) = self.scratch.logits();
        self.ops.draw(logits, orders, stage)
    }
}
