//! Attention of each row over the pages of its sequence, by chunks of keys anchored at absolute positions.
//!
//! Per chunk of [`CHUNK`] keys: scores, their maximum m, weights eˢ⁻ᵐ, their sum l, the weighted sum o of the
//! values. Chunks merge in ascending order; the division by l comes once, at the end. A key outside the window
//! has weight zero, and a page wholly outside is not read: neither changes a bit. So rows of a sequence and heads
//! that share keys pass over a page together, each as if it were alone.

use std::ops::Range;

use super::lanes::{LANES, Lanes, exp, exp_scalar, vectorised};
use super::pages::KvPages;
use super::{Buffer, Cpu, Disjoint};
use crate::ops::{CHUNK, PAGE, Rows};

/// What a layer's attention is.
#[derive(Clone, Copy, Debug)]
pub struct AttentionShape {
    /// Query heads; each group of `heads / kv_heads` shares one head of keys and values.
    pub heads: usize,
    /// What scores are multiplied by.
    pub scale: f32,
    /// How many keys a row sees, itself included; `None`: all before it.
    pub window: Option<usize>,
}

/// Queries that share each pass over their keys and values, at most: rows times heads.
const QUERIES: usize = 12;

impl Cpu {
    /// `qkv` holds turned queries first, `[rows, heads · head_dim + …]`; `out` becomes `[rows, heads · head_dim]`.
    pub fn attention(
        &self,
        qkv: &Buffer,
        shape: AttentionShape,
        rows: Rows<'_>,
        (pages, layer): (&KvPages, usize),
        out: &mut Buffer,
    ) {
        let (kv_heads, head_dim) = (pages.kv_heads(), pages.head_dim());
        out.reshape(rows.len(), shape.heads * head_dim);
        let group = shape.heads / kv_heads;
        let blocks = blocks(rows.sequences, (QUERIES / group).max(1));
        let to = Disjoint::new(&mut out.data);
        let seen = rows.positions.iter().map(|&position| shape.seen(position));
        let seen: usize = seen.map(|seen| seen.len()).sum();
        let work = 2 * seen * shape.heads * head_dim;
        self.split(kv_heads * blocks.len(), work, |range| {
            let mut scratch = Scratch::new(pages.stride);
            for index in range {
                let (head, block) = (index / blocks.len(), &blocks[index % blocks.len()]);
                let keys = Keys {
                    pages,
                    layer,
                    head,
                    table: rows.tables[rows.sequences[block.start] as usize],
                };
                for first in (0..group).step_by(QUERIES) {
                    let heads = QUERIES.min(group - first);
                    let start = (head * group + first) * head_dim;
                    scratch.clear();
                    for row in block.clone() {
                        let seen = shape.seen(rows.positions[row]);
                        for query in qkv.row(row)[start..][..heads * head_dim].chunks(head_dim) {
                            scratch.add_query(query, seen.clone());
                        }
                    }
                    attend(self.isa, &keys, shape.scale, &mut scratch);
                    let mut results = scratch.results(head_dim);
                    for row in block.clone() {
                        // SAFETY: a row's heads are written by one thread alone.
                        let out = unsafe {
                            to.slice(row * shape.heads * head_dim + start, heads * head_dim)
                        };
                        for (out, result) in out.chunks_mut(head_dim).zip(&mut results) {
                            out.copy_from_slice(result);
                        }
                    }
                }
            }
        });
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

impl AttentionShape {
    /// The keys that a row at `position` sees.
    pub fn seen(&self, position: u32) -> Range<usize> {
        let end = position as usize + 1;
        self.window.map_or(0, |window| end.saturating_sub(window))..end
    }
}

/// The keys and values of one head of a sequence.
struct Keys<'a> {
    pages: &'a KvPages,
    layer: usize,
    head: usize,
    table: &'a [u32],
}

/// A few queries over the same keys, and what their attention needs.
struct Scratch {
    count: usize,
    /// `[head_dim][count]` once all are there; `[count][head_dim]` before.
    queries: Vec<f32>,
    transposed: Vec<f32>,
    /// The keys that each query sees.
    seen: [Range<usize>; QUERIES],
    scores: [[f32; CHUNK]; QUERIES],
    /// The chunk's and the running weighted sums, `[QUERIES][stride]`.
    chunk_sums: Vec<f32>,
    sums: Vec<f32>,
}

impl Scratch {
    fn new(stride: usize) -> Scratch {
        let sums = vec![0.0; QUERIES * stride];
        Scratch {
            count: 0,
            queries: Vec::new(),
            transposed: Vec::new(),
            seen: [const { 0..0 }; QUERIES],
            scores: [[0.0; CHUNK]; QUERIES],
            chunk_sums: sums.clone(),
            sums,
        }
    }

    fn clear(&mut self) {
        self.count = 0;
        self.queries.clear();
        self.sums.fill(0.0);
    }

    fn add_query(&mut self, query: &[f32], seen: Range<usize>) {
        self.queries.extend_from_slice(query);
        self.seen[self.count] = seen;
        self.count += 1;
    }

    /// Each query's weighted sum, `[head_dim]`.
    fn results(&self, head_dim: usize) -> impl Iterator<Item = &[f32]> {
        let stride = self.sums.len() / QUERIES;
        let sums = self.sums.chunks_exact(stride).take(self.count);
        sums.map(move |sums| &sums[..head_dim])
    }
}

vectorised! {
    /// Leaves the queries' attention in `scratch.sums`.
    fn attend(keys: &Keys<'_>, scale: f32, scratch: &mut Scratch) = attend_kernel
}

#[inline(always)]
fn attend_kernel<L: Lanes>(keys: &Keys<'_>, scale: f32, scratch: &mut Scratch) {
    let stride = keys.pages.stride;
    transpose(&scratch.queries, scratch.count, &mut scratch.transposed);
    let queries = 0..scratch.count;
    let first = scratch.seen[queries.clone()].iter().map(|seen| seen.start);
    let end = scratch.seen[queries.clone()].iter().map(|seen| seen.end);
    let (first, end) = (first.min().unwrap_or(0), end.max().unwrap_or(0));
    let (mut maxima, mut totals) = ([f32::NEG_INFINITY; QUERIES], [0.0f32; QUERIES]);
    for chunk in first / CHUNK..end.div_ceil(CHUNK) {
        let start = chunk * CHUNK;
        let pages = first.max(start) / PAGE..end.min(start + CHUNK).div_ceil(PAGE);
        let lanes = pages.start * PAGE - start..pages.end * PAGE - start;
        score::<L>(keys, scale, pages.clone(), scratch);
        let mut weighed = [(f32::NEG_INFINITY, 0.0); QUERIES];
        for query in queries.clone() {
            let scores = &mut scratch.scores[query];
            let seen = &scratch.seen[query];
            let seen = seen.start.max(start)..seen.end.min(start + CHUNK);
            if seen.is_empty() {
                scores[lanes.clone()].fill(0.0);
            } else {
                scores[lanes.start..seen.start - start].fill(f32::NEG_INFINITY);
                scores[seen.end - start..lanes.end].fill(f32::NEG_INFINITY);
                weighed[query] = weigh::<L>(&mut scores[lanes.clone()]);
            }
        }
        add_values::<L>(keys, pages, scratch);

        for query in queries.clone() {
            let (maximum, total) = weighed[query];
            if total == 0.0 {
                continue;
            }
            let merged = maxima[query].max(maximum);
            let (old, new) = (
                exp_scalar(maxima[query] - merged),
                exp_scalar(maximum - merged),
            );
            totals[query] = totals[query] * old + total * new;
            let sums = &mut scratch.sums[query * stride..][..stride];
            for (sum, chunk_sum) in sums.iter_mut().zip(&scratch.chunk_sums[query * stride..]) {
                *sum = *sum * old + chunk_sum * new;
            }
            maxima[query] = merged;
        }
    }
    for query in queries {
        for sum in &mut scratch.sums[query * stride..][..stride] {
            *sum /= totals[query];
        }
    }
}

/// `[count][width]` to `[width][count]`.
#[inline(always)]
fn transpose(from: &[f32], count: usize, to: &mut Vec<f32>) {
    to.resize(from.len(), 0.0);
    let width = from.len() / count;
    for (index, values) in from.chunks_exact(width).enumerate() {
        for (to, value) in to[index..].iter_mut().step_by(count).zip(values) {
            *to = *value;
        }
    }
}

/// Calls `$kernel` with the number of queries as a constant, as many as the registers hold at a time.
macro_rules! by_queries {
    ($kernel:ident::<$lanes:ident>($count:expr, $($argument:expr),*)) => {
        let mut first = 0;
        while first < $count {
            let left = ($count - first).min($lanes::ROWS);
            first += if $lanes::ROWS == QUERIES {
                match left {
                    1 => $kernel::<$lanes, 1, 2>(first, $($argument),*),
                    2 => $kernel::<$lanes, 2, 2>(first, $($argument),*),
                    3 => $kernel::<$lanes, 3, 2>(first, $($argument),*),
                    4 => $kernel::<$lanes, 4, 2>(first, $($argument),*),
                    5 => $kernel::<$lanes, 5, 2>(first, $($argument),*),
                    6 => $kernel::<$lanes, 6, 2>(first, $($argument),*),
                    7 => $kernel::<$lanes, 7, 2>(first, $($argument),*),
                    8 => $kernel::<$lanes, 8, 2>(first, $($argument),*),
                    9 => $kernel::<$lanes, 9, 2>(first, $($argument),*),
                    10 => $kernel::<$lanes, 10, 2>(first, $($argument),*),
                    11 => $kernel::<$lanes, 11, 2>(first, $($argument),*),
                    _ => $kernel::<$lanes, 12, 2>(first, $($argument),*),
                }
            } else {
                match left {
                    1 => $kernel::<$lanes, 1, 1>(first, $($argument),*),
                    2 => $kernel::<$lanes, 2, 1>(first, $($argument),*),
                    3 => $kernel::<$lanes, 3, 1>(first, $($argument),*),
                    _ => $kernel::<$lanes, 4, 1>(first, $($argument),*),
                }
            };
        }
    };
}

/// `scores[query][key] = scale · query · key` for the keys of `pages`; other entries keep what they held.
#[inline(always)]
fn score<L: Lanes>(keys: &Keys<'_>, scale: f32, pages: Range<usize>, scratch: &mut Scratch) {
    let Scratch {
        count,
        transposed,
        scores,
        ..
    } = scratch;
    for page in pages {
        let head = keys.pages.page(keys.layer, keys.table[page], keys.head);
        let at = page * PAGE % CHUNK;
        by_queries!(score_page::<L>(
            *count,
            head.keys,
            (&*transposed, *count),
            scale,
            at,
            &mut *scores
        ));
    }
}

/// The scores of `H` queries from `first` on, `V` vectors of keys at a time. Gives `H`.
#[inline(always)]
fn score_page<L: Lanes, const H: usize, const V: usize>(
    first: usize,
    keys: &[f32],
    (queries, count): (&[f32], usize),
    scale: f32,
    at: usize,
    scores: &mut [[f32; CHUNK]; QUERIES],
) -> usize {
    let lines = keys.as_chunks::<PAGE>().0.iter();
    for part in (0..PAGE).step_by(V * LANES) {
        let mut sums = [[L::splat(0.0); V]; H];
        for (line, queries) in lines.clone().zip(queries.chunks_exact(count)) {
            let queries = &queries[first..][..H];
            let mut keys = [L::splat(0.0); V];
            for (n, keys) in keys.iter_mut().enumerate() {
                // SAFETY: a line holds PAGE values, a multiple of V · LANES.
                *keys = unsafe { L::load(line.as_ptr().add(part + n * LANES)) };
            }
            for (query, sums) in queries.iter().zip(&mut sums) {
                let query = L::splat(*query);
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = query.fma(key, *sum);
                }
            }
        }
        for (scores, sums) in scores[first..].iter_mut().zip(sums) {
            for (n, sum) in sums.into_iter().enumerate() {
                let scores = &mut scores[at + part + n * LANES..][..LANES];
                // SAFETY: the slice holds LANES values.
                unsafe { sum.mul(L::splat(scale)).store(scores.as_mut_ptr()) };
            }
        }
    }
    H
}

/// Turns scores, whole lanes of them, to weights eˢ⁻ᵐ; gives m and the sum of the weights.
#[inline(always)]
fn weigh<L: Lanes>(scores: &mut [f32]) -> (f32, f32) {
    let groups = scores.as_chunks_mut::<LANES>().0;
    let mut maximum = L::splat(f32::NEG_INFINITY);
    for group in groups.iter() {
        maximum = maximum.max(L::from_array(group));
    }
    let maximum = maximum.maximum();
    let mut total = L::splat(0.0);
    for group in groups {
        let weights = exp(L::from_array(group).sub(L::splat(maximum)));
        total = total.add(weights);
        *group = weights.to_array();
    }
    (maximum, total.sum())
}

/// `chunk_sums[query] = Σ weight · value` over the keys of `pages`, in order; a few lanes of all queries at a time.
#[inline(always)]
fn add_values<L: Lanes>(keys: &Keys<'_>, pages: Range<usize>, scratch: &mut Scratch) {
    let Scratch {
        count,
        scores,
        chunk_sums,
        ..
    } = scratch;
    by_queries!(add_queries::<L>(
        *count,
        keys,
        &pages,
        &*scores,
        &mut *chunk_sums
    ));
}

/// The sums of `H` queries from `first` on, `V` vectors of values at a time. Gives `H`.
#[inline(always)]
fn add_queries<L: Lanes, const H: usize, const V: usize>(
    first: usize,
    keys: &Keys<'_>,
    pages: &Range<usize>,
    weights: &[[f32; CHUNK]; QUERIES],
    sums: &mut [f32],
) -> usize {
    let groups = keys.pages.stride / LANES;
    let weights = &weights[first..][..H];
    let sums = &mut sums[first * keys.pages.stride..];
    let whole = groups / V * V;
    for group in (0..whole).step_by(V) {
        add_lanes::<L, H, V>(keys, pages.clone(), weights, sums, group);
    }
    for group in whole..groups {
        add_lanes::<L, H, 1>(keys, pages.clone(), weights, sums, group);
    }
    H
}

#[inline(always)]
fn add_lanes<L: Lanes, const H: usize, const V: usize>(
    keys: &Keys<'_>,
    pages: Range<usize>,
    weights: &[[f32; CHUNK]],
    sums: &mut [f32],
    group: usize,
) {
    let stride = keys.pages.stride;
    let mut totals = [[L::splat(0.0); V]; H];
    for page in pages {
        let head = keys.pages.page(keys.layer, keys.table[page], keys.head);
        let at = page * PAGE % CHUNK;
        for (slot, value) in head.values.chunks_exact(stride).enumerate() {
            let mut values = [L::splat(0.0); V];
            for (lane, values) in values.iter_mut().enumerate() {
                // SAFETY: a value's row is padded to whole lanes, of which there are `group + V` or more.
                *values = unsafe { L::load(value.as_ptr().add((group + lane) * LANES)) };
            }
            for (totals, weights) in totals.iter_mut().zip(weights) {
                let weight = L::splat(weights[at + slot]);
                for (total, value) in totals.iter_mut().zip(values) {
                    *total = weight.fma(value, *total);
                }
            }
        }
    }
    for (query, totals) in totals.into_iter().enumerate() {
        for (lane, total) in totals.into_iter().enumerate() {
            let sum = &mut sums[query * stride + (group + lane) * LANES..][..LANES];
            // SAFETY: the slice holds LANES values.
            unsafe { total.store(sum.as_mut_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Isa, Rope, Vector};
    use super::*;
    use crate::ops::HeadNorms;

    struct Case {
        heads: usize,
        kv_heads: usize,
        head_dim: usize,
        length: usize,
        window: Option<usize>,
    }

    fn value(seed: usize) -> f32 {
        ((seed as f32) * 12.989_8).sin() * 2.0
    }

    /// Feeds `length` positions through pages in steps of `step` rows; gives every row's output.
    fn run(case: &Case, step: usize, isa: Isa, page_order: impl Fn(u32) -> u32) -> Vec<Vec<f32>> {
        let mut cpu = Cpu::new(2).unwrap();
        cpu.isa = isa;
        let count = case.length.div_ceil(PAGE) as u32;
        let table: Vec<u32> = (0..count).map(page_order).collect();
        let mut pages = KvPages::new(1, count as usize, case.kv_heads, case.head_dim);
        let width = (case.heads + 2 * case.kv_heads) * case.head_dim;
        let rope = Rope::new(&vec![0.0; case.head_dim / 2], case.length);
        let shape = AttentionShape {
            heads: case.heads,
            scale: 0.3,
            window: case.window,
        };
        let mut outputs = Vec::new();
        for start in (0..case.length).step_by(step) {
            let positions: Vec<u32> = (start..case.length.min(start + step))
                .map(|p| p as u32)
                .collect();
            let zeros = vec![0; positions.len()];
            let tables = [table.as_slice()];
            let rows = Rows {
                tokens: &zeros,
                positions: &positions,
                sequences: &zeros,
                tables: &tables,
            };
            let mut qkv = Buffer::default();
            qkv.reshape(positions.len(), width);
            for (row, &position) in positions.iter().enumerate() {
                for (k, x) in qkv.row_mut(row).iter_mut().enumerate() {
                    *x = value(position as usize * width + k);
                }
            }
            cpu.rotate_and_store(&mut qkv, None, &rope, rows, (&mut pages, 0));
            let mut out = Buffer::default();
            cpu.attention(&qkv, shape, rows, (&pages, 0), &mut out);
            outputs.extend((0..out.rows()).map(|row| out.row(row).to_vec()));
        }
        outputs
    }

    fn exact(case: &Case, position: usize) -> Vec<f64> {
        let width = (case.heads + 2 * case.kv_heads) * case.head_dim;
        let at = |position: usize, k: usize| f64::from(value(position * width + k));
        let first = case
            .window
            .map_or(0, |window| (position + 1).saturating_sub(window));
        let mut out = Vec::new();
        for head in 0..case.heads {
            let kv_head = head / (case.heads / case.kv_heads);
            let weights: Vec<f64> = (first..=position)
                .map(|key| {
                    let dot: f64 = (0..case.head_dim)
                        .map(|d| {
                            at(position, head * case.head_dim + d)
                                * at(key, (case.heads + kv_head) * case.head_dim + d)
                        })
                        .sum();
                    (dot * f64::from(0.3f32)).exp()
                })
                .collect();
            let total: f64 = weights.iter().sum();
            for d in 0..case.head_dim {
                let offset = (case.heads + case.kv_heads + kv_head) * case.head_dim + d;
                let sum: f64 = (first..=position)
                    .zip(&weights)
                    .map(|(key, w)| w * at(key, offset))
                    .sum();
                out.push(sum / total);
            }
        }
        out
    }

    #[test]
    fn equals_the_formula_and_itself_however_it_is_fed() {
        let cases = [
            Case {
                heads: 2,
                kv_heads: 1,
                head_dim: 8,
                length: 70,
                window: None,
            },
            Case {
                heads: 4,
                kv_heads: 2,
                head_dim: 20,
                length: 300,
                window: Some(33),
            },
            Case {
                heads: 1,
                kv_heads: 1,
                head_dim: 16,
                length: 530,
                window: None,
            },
            Case {
                heads: 2,
                kv_heads: 2,
                head_dim: 4,
                length: 530,
                window: Some(1),
            },
            Case {
                heads: 1,
                kv_heads: 1,
                head_dim: 4,
                length: 600,
                window: Some(280),
            },
        ];
        for case in &cases {
            let last = case.length.div_ceil(PAGE) as u32 - 1;
            let whole = run(case, case.length, Isa::detect(), |page| page);
            for (position, row) in whole.iter().enumerate() {
                for (y, exact) in row.iter().zip(exact(case, position)) {
                    assert!(
                        (f64::from(*y) - exact).abs() < 2e-5,
                        "{position}: {y}, not {exact}"
                    );
                }
            }
            assert_eq!(run(case, 1, Isa::detect(), |page| last - page), whole);
            assert_eq!(run(case, 37, Isa::Portable, |page| page), whole);
        }
    }

    #[test]
    fn head_norms_come_before_the_turn() {
        let cpu = Cpu::new(1).unwrap();
        let mut pages = KvPages::new(1, 1, 1, 4);
        let rope = Rope::new(&[1.0, 0.1], 8);
        let norms = HeadNorms {
            query: Vector(vec![1.0, 2.0, 1.0, 1.0]),
            key: Vector(vec![1.0; 4]),
            epsilon: 0.0,
        };
        let mut qkv = Buffer::default();
        qkv.reshape(1, 12);
        qkv.row_mut(0)
            .copy_from_slice(&[3.0, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0]);
        let table = [0u32];
        let rows = Rows {
            tokens: &[0],
            positions: &[3],
            sequences: &[0],
            tables: &[&table],
        };
        cpu.rotate_and_store(&mut qkv, Some(&norms), &rope, rows, (&mut pages, 0));
        let (sine, cosine) = 3.0f32.sin_cos();
        let close = |a: f32, b: f32| (a - b).abs() < 1e-6;
        assert!(close(qkv.row(0)[0], 2.0 * cosine) && close(qkv.row(0)[2], 2.0 * sine));
        let (sine, cosine) = 0.3f32.sin_cos();
        assert!(close(qkv.row(0)[5], 2.0 * cosine) && close(qkv.row(0)[7], 2.0 * sine));
        let page = pages.page(0, 0, 0);
        assert!(close(page.keys[PAGE + 3], 2.0 * cosine));
        assert_eq!(&page.values[3 * pages.stride..][..4], &[1.0, 2.0, 3.0, 4.0]);
    }
}
