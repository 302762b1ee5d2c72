//! What every backend stands on: the interface that decoders and encoders are written against, a step's rows, how numbers are kept, what a
//! machine's memory takes; lanes, and the rounding of weights and the drawing of tokens that are the same on every machine. Nothing here knows
//! a backend.

mod backend;
mod delta;
mod disjoint;
mod encoder;
mod isa;
pub mod lanes;
pub mod machine;
mod precision;
mod rotation;
pub mod rounding;
pub mod sampler;
pub mod sampling;
pub mod vectors;

use std::ops::Range;

pub use backend::{Backend, HostStep};
pub use delta::{DeltaShape, DeltaWeights, LayerStates, StateRows, StateShape};
pub use disjoint::Disjoint;
pub use encoder::{Biased, EncoderBackend, LayerNorm, TextTables};
pub use isa::Isa;
pub use machine::{CANDLE, CANDLE_ROWS, Machine};
pub use precision::{Precision, Quantisation, StoredType};
pub use rotation::{Angles, QueryGrowth, Rotation};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepLimits {
    pub rows: usize,
    /// Of the rows, those that give logits.
    pub logit_rows: usize,
    /// Positions of a sequence.
    pub positions: usize,
}

/// The pages of one layer: `P` is a shared or an exclusive reference to a pool of pages.
#[derive(Clone, Copy, Debug)]
pub struct LayerPages<P> {
    pub pages: P,
    pub layer: usize,
}

/// The norms around the addition of a branch to the residual.
#[derive(Clone, Copy, Debug)]
pub struct BranchNorms<'a, V> {
    /// Of the branch before it is added, where the family has one.
    pub post: Option<&'a V>,
    /// What the sum is multiplied by.
    pub scale: f32,
    /// Of the sum, for whatever comes next.
    pub next: Option<&'a V>,
    pub epsilon: f32,
}

/// Norms over each head of queries and keys, and of values where a family has one, `[head_dim]` each.
#[derive(Debug)]
pub struct HeadNorms<V> {
    pub query: V,
    pub key: V,
    pub value: Option<V>,
    pub epsilon: f32,
}

/// How the numbers of a buffer are to be kept where a machine has a narrower type for what only products read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// f32 everywhere.
    Wide,
    /// bf16 where products take bf16.
    Narrow,
    /// f32 where what is between two operations is a pass of its own; nothing where one does both.
    Passing,
}

/// What a page holds, over all layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageShape {
    pub layers: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
}

/// Positions per page of keys and values. It divides [`CHUNK`], so that a page never straddles two chunks.
pub const PAGE: usize = 32;

/// Keys per attention chunk, anchored at absolute positions: each chunk has a softmax of its own, and the
/// chunks merge in ascending order, so that a split of the work never shows in the bits.
pub const CHUNK: usize = 256;

#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads; each group of `heads / kv_heads` shares one head of keys and values.
    pub heads: usize,
    /// What scores are multiplied by.
    pub scale: f32,
    /// How many keys a row sees before it, itself included; `None`: all.
    pub window: Option<usize>,
    /// Whether rows see as far ahead: a step then holds whole sequences.
    pub both_ways: bool,
}

impl AttentionShape {
    /// The keys that a row at `position` sees.
    pub fn seen(&self, position: u32) -> Range<usize> {
        let end = position as usize + 1;
        self.window.map_or(0, |window| end.saturating_sub(window))..end
    }

    /// The keys that a row at `position` of a sequence of `length` sees, where rows see ahead.
    pub fn seen_both_ways(&self, position: u32, length: usize) -> Range<usize> {
        let end = self.window.map_or(length, |window| length.min(position as usize + window));
        self.seen(position).start..end
    }
}

/// What multiplies the up projection in a gated feed-forward layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    Silu,
    /// The tanh approximation of GELU, `x · sigmoid(2·√(2/π)·(x + 0.044715·x³))`.
    GeluTanh,
}

/// The rows of one step. All slices but `tables` and `states` have one entry a row, `segments` none but for steps of whole texts.
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a> {
    pub tokens: &'a [u32],
    /// Absolute positions in their sequences.
    pub positions: &'a [u32],
    /// Index into `tables`.
    pub sequences: &'a [u32],
    /// Which text of a pair each token of an encoder's is of.
    pub segments: &'a [u32],
    /// The pages of each sequence, in order; page `i` holds positions `i · PAGE ..`.
    pub tables: &'a [&'a [u32]],
    /// Of each sequence, where the model has layers with states.
    pub states: &'a [StateRows],
}

impl Rows<'_> {
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Tokens, positions and sequences of the rows that give logits, where those are not all, each once and in order.
    pub fn few(&self, logit_rows: &[usize]) -> Option<[Vec<u32>; 3]> {
        let are_few = logit_rows.len() != self.len() && logit_rows.is_sorted_by(|a, b| a < b);
        let all = [self.tokens, self.positions, self.sequences];
        are_few.then(|| all.map(|of_all| logit_rows.iter().map(|row| of_all[*row]).collect()))
    }

    /// Of each sequence: the position after its last row here.
    pub fn lengths(&self) -> Vec<usize> {
        let mut lengths = vec![0; self.tables.len()];
        for (&sequence, &position) in self.sequences.iter().zip(self.positions) {
            let length = &mut lengths[sequence as usize];
            *length = (*length).max(position as usize + 1);
        }
        lengths
    }
}

/// Runs of at most `length` rows of one sequence.
pub fn blocks(sequences: &[u32], length: usize) -> Vec<Range<usize>> {
    let mut blocks: Vec<Range<usize>> = Vec::new();
    for (row, sequence) in sequences.iter().enumerate() {
        match blocks.last_mut() {
            Some(block) if block.len() < length && sequences[block.start] == *sequence => {
                block.end += 1;
            }
            _ => blocks.push(row..row + 1),
        }
    }
    blocks
}
