//! A few queries over the same keys, and what their attention needs on the way.

use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::QUERIES;
use crate::{CHUNK, PAGE};

/// Queries that share each pass over their keys and values: what the registers hold of them at a time.
pub struct Queries {
    pub count: usize,
    /// `[count][stride]`, and zeros to make sixteen once all are there; then also `[stride][16]`.
    pub rows: Vec<f32>,
    pub transposed: Vec<f32>,
    /// `rows` as bf16, two in the bits of a number, where products are of those.
    pub rounded: Vec<f32>,
    /// The keys that each query sees, and those that any does.
    pub seen: [Range<usize>; QUERIES],
    pub all_seen: Range<usize>,
    pub scores: [[f32; CHUNK]; QUERIES],
    /// Weights as bf16, two keys in the bits of a number, where products are of those.
    pub pairs: [[f32; CHUNK / 2]; QUERIES],
    /// Of the chunk's keys: the largest score, and the sum of the weights relative to it.
    pub weighed: [(f32, f32); QUERIES],
    /// The same of all keys before.
    pub maxima: [f32; QUERIES],
    pub totals: [f32; QUERIES],
    /// The chunk's and the running weighted sums, `[QUERIES][stride]`.
    pub chunk_sums: Vec<f32>,
    pub sums: Vec<f32>,
}

impl Queries {
    /// None yet, and room for none.
    pub fn new() -> Queries {
        Queries {
            count: 0,
            rows: Vec::new(),
            transposed: Vec::new(),
            rounded: Vec::new(),
            seen: [const { 0..0 }; QUERIES],
            all_seen: 0..0,
            scores: [[0.0; CHUNK]; QUERIES],
            pairs: [[0.0; CHUNK / 2]; QUERIES],
            weighed: [(0.0, 0.0); QUERIES],
            maxima: [0.0; QUERIES],
            totals: [0.0; QUERIES],
            chunk_sums: Vec::new(),
            sums: Vec::new(),
        }
    }

    /// Forgets the last ones; the next have up to `stride` components, whole lanes of them.
    pub fn clear(&mut self, stride: usize) {
        self.count = 0;
        self.rows.clear();
        self.maxima.fill(f32::NEG_INFINITY);
        self.totals.fill(0.0);
        self.chunk_sums.resize(QUERIES * stride, 0.0);
        self.sums.clear();
        self.sums.resize(QUERIES * stride, 0.0);
    }

    pub fn add(&mut self, query: &[f32], seen: Range<usize>) {
        self.rows.extend_from_slice(query);
        self.rows.resize((self.count + 1) * self.sums.len() / QUERIES, 0.0);
        self.all_seen = if self.count == 0 {
            seen.clone()
        } else {
            self.all_seen.start.min(seen.start)..self.all_seen.end.max(seen.end)
        };
        self.seen[self.count] = seen;
        self.count += 1;
    }

    /// To be called once all are added.
    #[inline(always)]
    pub fn transpose<L: Lanes>(&mut self) {
        let stride = self.sums.len() / QUERIES;
        self.rows.resize(LANES * stride, 0.0);
        transpose_rows::<L>(&self.rows, &mut self.transposed);
    }

    /// The keys of the chunk that starts at `start` that any query sees.
    pub fn seen_of_chunk(&self, start: usize) -> Range<usize> {
        self.all_seen.start.max(start)..self.all_seen.end.min(start + CHUNK)
    }

    /// Likewise of the page that starts at `start`, counted from there.
    pub fn seen_of_page(&self, start: usize) -> Range<usize> {
        let first = self.all_seen.start.max(start) - start;
        first..(self.all_seen.end.min(start + PAGE).saturating_sub(start))
    }

    /// The entries of `scores` that the chunk's keys fill, whole lanes of them.
    pub fn scored(&self, start: usize) -> Range<usize> {
        let keys = self.seen_of_chunk(start);
        keys.start / PAGE * PAGE - start..keys.end.next_multiple_of(LANES) - start
    }

    /// Each query's weighted sum, `[head_dim]`.
    pub fn results(&self, head_dim: usize) -> impl Iterator<Item = &[f32]> {
        let sums = self.sums.chunks_exact(self.sums.len() / QUERIES);
        sums.take(self.count).map(move |sums| &sums[..head_dim])
    }
}

/// Sixteen rows of whole lanes, to sixteen columns.
#[inline(always)]
pub fn transpose_rows<L: Lanes>(rows: &[f32], to: &mut Vec<f32>) {
    to.resize(rows.len(), 0.0);
    let width = rows.len() / LANES;
    for lane in (0..width).step_by(LANES) {
        let (from, to) = (rows[lane..].as_ptr(), to[lane * LANES..].as_mut_ptr());
        // SAFETY: there are sixteen rows, each with sixteen numbers from `lane` on, and as many columns.
        unsafe { L::transpose(from, width, to, LANES) };
    }
}
