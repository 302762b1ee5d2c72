//! Heads that are normed and turned, and keys and values on their way to pages.

use super::arguments::Arguments;
use super::launch::Launch;
use super::stage::Step;
use super::{Buffer, Cuda, Rope, Vector};

/// Heads that one CTA of the rotary kernel takes.
const HEADS_AT_ONCE: usize = 4;
/// Rows and components of a head's values that one takes where rows are many; see kernels/rotary.cu.
const VALUE_ROWS: usize = 32;
const VALUE_PART: usize = 64;
/// Numbers of the widest heads that all kernels take.
pub(super) const COMMON_DIM: usize = 256;

/// The heads of a step's rows.
pub(super) struct Heads<'a> {
    /// Weights of queries', keys' and values' norms.
    pub norms: [Option<&'a Vector>; 3],
    pub epsilon: f32,
    pub rope: &'a Rope,
    pub head_dim: usize,
    /// Of keys and values; 0: queries are alone in their rows.
    pub kv_heads: usize,
    /// Addresses of a layer's keys and values.
    pub pages: [u64; 2],
}

impl Cuda {
    pub(super) fn turn(&self, qkv: &Buffer, queries: &mut Buffer, step: Step, heads: Heads<'_>) {
        let Heads { norms, epsilon, rope, head_dim, kv_heads, pages } = heads;
        queries.set_rows(step.rows);
        let all_heads = qkv.width / head_dim;
        // Values of few rows are written with the row's other heads, and so are those that are normed.
        let blocks = step.rows >= VALUE_ROWS && norms[2].is_none() && kv_heads > 0;
        let of_row = if blocks { all_heads - kv_heads } else { all_heads };
        let parts = kv_heads * head_dim.div_ceil(VALUE_PART);
        let value_blocks = if blocks { step.rows.div_ceil(VALUE_ROWS) * parts } else { 0 };
        let for_values = value_blocks.div_ceil(step.rows.max(1));
        let function = match head_dim > COMMON_DIM {
            true => self.kernels.rotate_widest,
            false => self.kernels.rotate_and_store.to(queries),
        };
        let grid = [step.rows, of_row.div_ceil(HEADS_AT_ONCE) + for_values, 1];
        let [query, key, value] = norms.map(|norm| norm.map(|norm| &norm.0));
        let arguments = Arguments::default()
            .region(&qkv.region)
            .maybe(query)
            .maybe(key)
            .maybe(value)
            .float(epsilon)
            .region(&rope.cosines)
            .region(&rope.sines)
            .maybe(rope.growth.as_ref())
            .address(step.at.positions)
            .address(step.at.sequences)
            .address(step.at.tables)
            .int(step.at.table_stride)
            .int(all_heads - 2 * kv_heads)
            .int(kv_heads)
            .int(head_dim)
            .int(head_dim.next_multiple_of(32))
            .int(rope.turned)
            .int(usize::from(blocks))
            .region(&queries.region)
            .address(pages[0])
            .address(pages[1]);
        self.stream.launch(Launch::new(function, grid, 32 * HEADS_AT_ONCE), arguments);
    }
}
