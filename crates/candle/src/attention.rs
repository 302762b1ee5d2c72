//! Attention of a few rows of one sequence over its gathered keys and values: softmax(QKᵀ)V.

use std::ops::Range;

use candle_core::{Result, Tensor};
use candle_nn::ops::softmax_last_dim;

use wardround_ops::{AttentionShape, CANDLE_ROWS, LayerPages, Rows, blocks};

use super::pages::Pages;

/// What is added to the score of a key that a row does not see. Finite: a row that sees none of a tile's keys has a
/// maximum there, and infinities have no difference.
const UNSEEN: f32 = -1e30;

/// `queries` and the result are `[rows, heads · head_dim]`.
pub fn attend_all(
    queries: &Tensor,
    shape: AttentionShape,
    rows: Rows<'_>,
    LayerPages { pages, layer }: LayerPages<&Pages>,
) -> Result<Tensor> {
    let split = (queries.dim(0)?, shape.heads, pages.head_dim);
    let queries = queries.reshape(split)?.transpose(0, 1)?;
    let attended = blocks(rows.sequences, CANDLE_ROWS).into_iter().map(|block| {
        let positions = &rows.positions[block.clone()];
        let seen = seen(shape, positions);
        let table = rows.tables[rows.sequences[block.start] as usize];
        let [keys, values] = pages.gather(layer, table, seen.clone())?;
        let queries = queries.narrow(1, block.start, block.len())?.contiguous()?;
        // One row sees all that was gathered for it.
        let mask = (block.len() > 1).then(|| {
            let size = (block.len(), seen.len());
            Tensor::from_vec(mask(shape, positions, seen), size, queries.device())
        });
        attend(&queries, [&keys, &values], mask.transpose()?, shape.scale)
    });
    let attended = attended.collect::<Result<Vec<Tensor>>>()?;
    let width = shape.heads * pages.head_dim;
    Tensor::cat(&attended, 1)?.transpose(0, 1)?.reshape(((), width))
}

/// From the first key that any of the rows sees to the last.
fn seen(shape: AttentionShape, positions: &[u32]) -> Range<usize> {
    let each = || positions.iter().map(|position| shape.seen(*position));
    let start = each().map(|seen| seen.start).min();
    let end = each().map(|seen| seen.end).max();
    start.unwrap_or(0)..end.unwrap_or(0)
}

/// `[positions, keys]`: nothing where a row sees a key.
fn mask(shape: AttentionShape, positions: &[u32], keys: Range<usize>) -> Vec<f32> {
    let row = |position: &u32| {
        let seen = shape.seen(*position);
        let weight = move |key| if seen.contains(&key) { 0.0 } else { UNSEEN };
        keys.clone().map(weight)
    };
    positions.iter().flat_map(row).collect()
}

/// `queries` and the result are `[heads, rows, head_dim]`, keys and values `[kv_heads, keys, head_dim]`.
fn attend(
    queries: &Tensor,
    [keys, values]: [&Tensor; 2],
    mask: Option<Tensor>,
    scale: f32,
) -> Result<Tensor> {
    let (heads, rows, head_dim) = queries.dims3()?;
    let (kv_heads, key_count, _) = keys.dims3()?;
    // The heads that share keys stand next to one another.
    let queries = queries.reshape((kv_heads, (), head_dim))?;
    let scores = (queries.matmul(&keys.t()?)? * f64::from(scale))?;
    let scores = match mask {
        Some(mask) => scores
            .reshape((heads, rows, key_count))?
            .broadcast_add(&mask)?
            .reshape(scores.shape())?,
        None => scores,
    };
    let attended = softmax_last_dim(&scores)?.matmul(values)?;
    attended.reshape((heads, rows, head_dim))
}
