//! The CUDA backend's memory beside weights: in every build, because memory is planned without the backend too.

use super::{CHUNK, Numbers, PAGE, PageShape, StepLimits};

/// Rows up to which a step is decoding, whoever's they are: keys are attended to chunk by chunk, and the launches are kept
/// as a graph.
pub const FEW_ROWS: usize = 64;
/// The same where most rows are of sequences of their own: 64 sequences with forced tokens are some 100 rows.
pub const MOST_DECODE_ROWS: usize = 128;

/// Rows that a decoding step has at most, where steps give so many rows of logits.
pub fn decode_rows(limits: StepLimits) -> usize {
    limits.rows.min((2 * limits.logit_rows).clamp(FEW_ROWS, MOST_DECODE_ROWS))
}

/// Bytes of one page of keys and values, bf16, over all layers.
pub fn page_bytes(shape: PageShape) -> usize {
    4 * shape.layers * shape.kv_heads * PAGE * padded(shape.head_dim)
}

/// Bytes of activations.
pub fn buffer_bytes(rows: usize, width: usize, numbers: Numbers) -> usize {
    match numbers {
        Numbers::Wide => 4 * rows * width,
        Numbers::Narrow => 2 * rows * padded(width),
        Numbers::Ungated => 0,
    }
}

/// Bytes of what attention by chunks leaves for their merge: f32 `[rows][chunks][heads][dim]`, a maximum and a total
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
