//! The kinds of machines, and what a model takes of their memory: planned in every build, with the backend or without.

use super::lanes::LANES;
use super::{CHUNK, Numbers, PAGE, PageShape, StepLimits, StoredType};

/// The beginning of a kind of candle's devices, where a row's bits may depend on the rows beside it.
pub const CANDLE: &str = "candle ";

/// The kinds of machines that a model can run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Machine {
    Cpu,
    Cuda,
    Candle,
}

impl std::fmt::Display for Machine {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(match self {
            Machine::Cpu => "cpu",
            Machine::Cuda => "cuda",
            Machine::Candle => "candle",
        })
    }
}

impl Machine {
    /// Bytes of one page of keys and values, over all layers. The CPU keeps them as `kept`, CUDA as bf16, candle as f32.
    pub fn page_bytes(self, shape: PageShape, kept: StoredType) -> usize {
        let PageShape { layers, kv_heads, head_dim } = shape;
        let row = match self {
            Machine::Cpu => head_dim.next_multiple_of(LANES) * kept.size_bytes(),
            Machine::Cuda => padded(head_dim) * StoredType::Bf16.size_bytes(),
            Machine::Candle => head_dim * StoredType::F32.size_bytes(),
        };
        2 * layers * kv_heads * PAGE * row
    }

    /// Rows of prompts that are worth computing in one step: enough to fill the machine, few enough that others who
    /// decode do not wait long.
    pub fn prefill_rows(self) -> usize {
        match self {
            Machine::Cpu | Machine::Candle => 512,
            Machine::Cuda => 2048,
        }
    }

    /// Rows of known tokens whose logits are worth computing in one step, for their log-probabilities.
    pub fn known_logit_rows(self) -> usize {
        match self {
            Machine::Cpu | Machine::Candle => 64,
            Machine::Cuda => 256,
        }
    }

    /// Bytes of activations. Candle rounds them, and their copies as bf16, up to powers of two.
    pub fn buffer_bytes(self, rows: usize, width: usize, numbers: Numbers) -> usize {
        let count = rows * width;
        match (self, numbers) {
            (Machine::Cpu, _) | (Machine::Cuda, Numbers::Wide) => 4 * count,
            (Machine::Cuda, Numbers::Narrow) => 2 * rows * padded(width),
            (Machine::Cuda, Numbers::Passing) => 0,
            (Machine::Candle, _) => {
                (4 * count).next_power_of_two() + (2 * count).next_power_of_two()
            }
        }
    }

    /// Bytes of what a step passes through beside its activations.
    pub fn stage_bytes(self, shape: PageShape, heads: usize, limits: StepLimits) -> usize {
        match self {
            Machine::Cpu => 0,
            Machine::Cuda => partial_bytes(shape, heads, limits).iter().sum(),
            Machine::Candle => {
                // Of one block: keys and values twice, once page by page and once head by head; a mask; scores, with what is added to
                // them, and their softmax.
                let (positions, rows) = (limits.positions, limits.rows.min(CANDLE_ROWS));
                let gathered = 4 * positions * shape.kv_heads * shape.head_dim;
                let (scores, mask) = (4 * positions * heads * rows, 4 * positions * rows);
                4 * gathered.next_power_of_two()
                    + mask.next_power_of_two()
                    + 3 * scores.next_power_of_two()
            }
        }
    }
}

/// Rows of a sequence that attend at once on candle, at most: their scores are kept whole.
pub const CANDLE_ROWS: usize = 128;

/// Rows up to which a step of CUDA's is decoding, whoever's they are: keys are attended to chunk by chunk, and the launches are kept
/// as a graph.
pub const FEW_ROWS: usize = 64;
/// The same where most rows are of sequences of their own: 64 sequences with forced tokens are some 100 rows.
pub const MOST_DECODE_ROWS: usize = 128;

/// Rows that a decoding step of CUDA's has at most, where steps give so many rows of logits.
pub fn decode_rows(limits: StepLimits) -> usize {
    limits.rows.min((2 * limits.logit_rows).clamp(FEW_ROWS, MOST_DECODE_ROWS))
}

/// Bytes of what CUDA's attention by chunks leaves for their merge: f32 `[rows][chunks][heads][dim]`, a maximum and a total
/// `[rows][chunks][heads]`, and zeros to count chunks by `[rows][kv_heads]`.
pub fn partial_bytes(shape: PageShape, heads: usize, limits: StepLimits) -> [usize; 3] {
    let rows = decode_rows(limits).next_multiple_of(16);
    let parts = rows * chunk_slots(limits.positions) * heads;
    [4 * parts * padded(shape.head_dim), 8 * parts, 4 * rows * shape.kv_heads]
}

/// Chunks of so many positions, rounded up to a power of two: the forms of a step are few.
pub fn chunk_slots(positions: usize) -> usize {
    positions.div_ceil(CHUNK).max(1).next_power_of_two()
}

/// Tensor cores take whole multiples of 32.
fn padded(numbers: usize) -> usize {
    numbers.next_multiple_of(32)
}
