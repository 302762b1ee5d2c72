//! The Metal backend's memory beside weights: in every build, because memory is planned without the backend too.

use super::{PAGE, PageShape};

/// Rows of a sequence that attend at once, at most: their scores are kept whole.
pub const BLOCK_ROWS: usize = 128;

/// Bytes of one page of keys and values, f32, over all layers.
pub fn page_bytes(shape: PageShape) -> usize {
    8 * shape.layers * shape.kv_heads * PAGE * shape.head_dim
}

/// Bytes of activations, f32, and of their copies as bf16; candle rounds both up to powers of two.
pub fn buffer_bytes(rows: usize, width: usize) -> usize {
    let numbers = rows * width;
    (4 * numbers).next_power_of_two() + (2 * numbers).next_power_of_two()
}

/// Bytes of what attention gathers and computes for one block: keys and values twice, once page by page and once head
/// by head; a mask; scores, with what is added to them, and their softmax.
pub fn attention_bytes(shape: PageShape, heads: usize, rows: usize, positions: usize) -> usize {
    let gathered = 4 * positions * shape.kv_heads * shape.head_dim;
    let scores = 4 * positions * heads * rows.min(BLOCK_ROWS);
    let mask = 4 * positions * rows.min(BLOCK_ROWS);
    4 * gathered.next_power_of_two() + mask.next_power_of_two() + 3 * scores.next_power_of_two()
}
