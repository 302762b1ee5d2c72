//! A few queries over the same keys, and what their attention needs on the way.

use std::ops::Range;

use super::QUERIES;
use crate::ops::{CHUNK, PAGE};

/// Queries that share each pass over their keys and values: what the registers hold of them at a time.
pub struct Queries {
    pub count: usize,
    /// `[head_dim][count]` once all are there; `[count][head_dim]` before, in `rows`.
    pub transposed: Vec<f32>,
    pub rows: Vec<f32>,
    pub rounded: Vec<u16>,
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
    pub fn new(stride: usize) -> Queries {
        Queries {
            count: 0,
            transposed: Vec::new(),
            rows: Vec::new(),
            rounded: Vec::new(),
            seen: [const { 0..0 }; QUERIES],
            all_seen: 0..0,
            scores: [[0.0; CHUNK]; QUERIES],
            pairs: [[0.0; CHUNK / 2]; QUERIES],
            weighed: [(0.0, 0.0); QUERIES],
            maxima: [0.0; QUERIES],
            totals: [0.0; QUERIES],
            chunk_sums: vec![0.0; QUERIES * stride],
            sums: vec![0.0; QUERIES * stride],
        }
    }

    /// Forgets the last ones.
    pub fn clear(&mut self) {
        self.count = 0;
        self.rows.clear();
        self.maxima.fill(f32::NEG_INFINITY);
        self.totals.fill(0.0);
        self.sums.fill(0.0);
    }

    pub fn add(&mut self, query: &[f32], seen: Range<usize>) {
        self.rows.extend_from_slice(query);
        self.all_seen = if self.count == 0 {
            seen.clone()
        } else {
            self.all_seen.start.min(seen.start)..self.all_seen.end.max(seen.end)
        };
        self.seen[self.count] = seen;
        self.count += 1;
    }

    /// To be called once all are added.
    pub fn transpose(&mut self) {
        self.transposed.resize(self.rows.len(), 0.0);
        let width = self.rows.len() / self.count;
        for (index, values) in self.rows.chunks_exact(width).enumerate() {
            let to = self.transposed[index..].iter_mut().step_by(self.count);
            for (to, value) in to.zip(values) {
                *to = *value;
            }
        }
    }

    /// The same with two bf16 of `rounded`, `[count][head_dim]`, in the bits of each number.
    pub fn transpose_pairs(&mut self, rounded: &[u16]) {
        let pairs = rounded.len() / 2 / self.count;
        self.transposed.resize(rounded.len() / 2, 0.0);
        for (pair, to) in self.transposed.chunks_exact_mut(self.count).enumerate() {
            for (to, query) in to.iter_mut().zip(rounded.as_chunks::<2>().0.chunks_exact(pairs)) {
                let [first, second] = query[pair];
                *to = f32::from_bits(u32::from(first) | u32::from(second) << 16);
            }
        }
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

    /// The entries of `scores` that the pages of the chunk's keys fill.
    pub fn scored(&self, start: usize) -> Range<usize> {
        let keys = self.seen_of_chunk(start);
        keys.start / PAGE * PAGE - start..keys.end.next_multiple_of(PAGE) - start
    }

    /// Each query's weighted sum, `[head_dim]`.
    pub fn results(&self, head_dim: usize) -> impl Iterator<Item = &[f32]> {
        let sums = self.sums.chunks_exact(self.sums.len() / QUERIES);
        sums.take(self.count).map(move |sums| &sums[..head_dim])
    }
}
