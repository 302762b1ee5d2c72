//! Attention of each row over the pages of its sequence, by chunks of keys anchored at absolute positions.
//!
//! Per chunk of `CHUNK` keys: scores, their maximum m, weights eˢ⁻ᵐ, their sum l, the weighted sum o of the
//! values. Chunks merge in ascending order; the division by l comes once, at the end. A key outside the window
//! has weight zero, and a page wholly outside is not read: neither changes a bit. So rows of a sequence and heads
//! that share keys pass over a page together, each as if it were alone.

mod kernel;
#[cfg(target_arch = "x86_64")]
mod pairs;
mod plain;
mod queries;
mod sums;
#[cfg(test)]
mod tests;

use std::cell::Cell;

use super::pages::PagesOf;
use super::{Buffer, Cpu, Disjoint};
use crate::{AttentionShape, LayerPages, PAGE, Rows, blocks};
use kernel::{Attended, Keys};
use queries::Queries;

/// Queries that the registers hold at a time: rows times heads.
const QUERIES: usize = 12;

/// Rows of a sequence that pass over its keys and values together, times the heads that share these.
const TOGETHER: usize = 16 * QUERIES;

/// What attention needs on the way.
#[derive(Default)]
struct Spare {
    all: Vec<Queries>,
    /// A page's keys or values.
    columns: Vec<f32>,
}

thread_local! {
    /// What a thread's last attention needed: made anew, it would be cleared anew for every layer.
    static SPARE: Cell<Spare> = Cell::default();
}

impl Cpu {
    /// `qkv` holds turned queries first, `[rows, heads · head_dim + …]`; `out` becomes `[rows, heads · head_dim]`.
    pub(super) fn attend<T: Attended>(
        &self,
        qkv: &Buffer,
        shape: AttentionShape,
        rows: Rows<'_>,
        LayerPages { pages, layer }: LayerPages<&PagesOf<T>>,
        out: &mut Buffer,
    ) {
        let (kv_heads, head_dim) = (pages.kv_heads, pages.head_dim);
        out.reshape(rows.len(), shape.heads * head_dim);
        let group = shape.heads / kv_heads;
        let blocks = blocks(rows.sequences, (TOGETHER / group).max(1));
        let to = Disjoint::new(&mut out.data);
        let lengths = if shape.both_ways { rows.lengths() } else { Vec::new() };
        let seen = |row: usize| match lengths.get(rows.sequences[row] as usize) {
            Some(&length) => shape.seen_both_ways(rows.positions[row], length),
            None => shape.seen(rows.positions[row]),
        };
        let work: usize = (0..rows.len()).map(|row| seen(row).len()).sum();
        let work = 2 * work * shape.heads * head_dim;
        self.split(kv_heads * blocks.len(), work, |range| {
            let mut spare = SPARE.take();
            let Spare { all, columns } = &mut spare;
            columns.resize(pages.stride * PAGE, 0.0);
            for index in range {
                let (head, block) = (index / blocks.len(), &blocks[index % blocks.len()]);
                let keys = Keys {
                    pages,
                    layer,
                    head,
                    table: rows.tables[rows.sequences[block.start] as usize],
                };
                let start = head * group * head_dim;
                let count = block.len() * group;
                all.resize_with(count.div_ceil(QUERIES).max(all.len()), Queries::new);
                let all = &mut all[..count.div_ceil(QUERIES)];
                all.iter_mut().for_each(|queries| queries.clear(pages.stride));
                let mut index = 0;
                for row in block.clone() {
                    let seen = seen(row);
                    for query in qkv.row(row)[start..][..group * head_dim].chunks(head_dim) {
                        all[index / QUERIES].add(query, seen.clone());
                        index += 1;
                    }
                }
                T::attend(self.isa, &keys, shape.scale, all, columns);
                let mut results = all.iter().flat_map(|queries| queries.results(head_dim));
                for row in block.clone() {
                    // SAFETY: a row's heads are written by one thread alone.
                    let out =
                        unsafe { to.slice(row * shape.heads * head_dim + start, group * head_dim) };
                    for (out, result) in out.chunks_mut(head_dim).zip(&mut results) {
                        out.copy_from_slice(result);
                    }
                }
            }
            SPARE.set(spare);
        });
    }
}
