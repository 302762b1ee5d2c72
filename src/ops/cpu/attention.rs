//! Attention of each row over the pages of its sequence, by chunks of keys anchored at absolute positions.
//!
//! Per chunk of [`CHUNK`] keys: scores, their maximum m, weights eˢ⁻ᵐ, their sum l, the weighted sum o of the
//! values. Chunks merge in ascending order; the division by l comes once, at the end. A key outside the window
//! has weight zero, and a page wholly outside is not read: neither changes a bit.

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

/// Query heads that share each pass over their keys and values, at most.
const HEADS: usize = 4;

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
        let to = Disjoint::new(&mut out.data);
        let seen: usize = rows
            .positions
            .iter()
            .map(|&position| shape.first_and_count(position).1)
            .sum();
        self.split(
            rows.len() * kv_heads,
            2 * seen * shape.heads * head_dim,
            |range| {
                let mut scratch = Scratch::new(pages.stride);
                for index in range {
                    let (row, kv_head) = (index / kv_heads, index % kv_heads);
                    let table = rows.tables[rows.sequences[row] as usize];
                    let keys = Keys {
                        pages,
                        layer,
                        head: kv_head,
                        table,
                        position: rows.positions[row],
                    };
                    for first in (0..group).step_by(HEADS) {
                        let heads = HEADS.min(group - first);
                        let (start, length) =
                            ((kv_head * group + first) * head_dim, heads * head_dim);
                        let queries = &qkv.row(row)[start..][..length];
                        // SAFETY: a row's heads are written by one thread alone.
                        let out = unsafe { to.slice(row * shape.heads * head_dim + start, length) };
                        attend(self.isa, queries, &keys, shape, &mut scratch, out);
                    }
                }
            },
        );
    }
}

impl AttentionShape {
    /// The first key that a row at `position` sees, and how many.
    fn first_and_count(&self, position: u32) -> (usize, usize) {
        let end = position as usize + 1;
        let count = self.window.map_or(end, |window| window.min(end));
        (end - count, count)
    }
}

/// The keys and values that one row and head sees.
struct Keys<'a> {
    pages: &'a KvPages,
    layer: usize,
    head: usize,
    table: &'a [u32],
    position: u32,
}

/// What a few heads' attention needs beside its output.
struct Scratch {
    scores: [[f32; CHUNK]; HEADS],
    /// The chunk's and the running weighted sums, `[HEADS][stride]`.
    chunk_sums: Vec<f32>,
    sums: Vec<f32>,
}

impl Scratch {
    fn new(stride: usize) -> Scratch {
        let sums = vec![0.0; HEADS * stride];
        Scratch {
            scores: [[0.0; CHUNK]; HEADS],
            chunk_sums: sums.clone(),
            sums,
        }
    }
}

vectorised! {
    /// `queries` and `out` are `[heads, head_dim]`, up to [`HEADS`] heads that share keys and values.
    fn attend(queries: &[f32], keys: &Keys<'_>, shape: AttentionShape, scratch: &mut Scratch, out: &mut [f32]) =
        attend_kernel
}

#[inline(always)]
fn attend_kernel<L: Lanes>(
    queries: &[f32],
    keys: &Keys<'_>,
    shape: AttentionShape,
    scratch: &mut Scratch,
    out: &mut [f32],
) {
    match queries.len() / keys.pages.head_dim() {
        1 => attend_heads::<L, 1>(queries, keys, shape, scratch, out),
        2 => attend_heads::<L, 2>(queries, keys, shape, scratch, out),
        3 => attend_heads::<L, 3>(queries, keys, shape, scratch, out),
        _ => attend_heads::<L, HEADS>(queries, keys, shape, scratch, out),
    }
}

#[inline(always)]
fn attend_heads<L: Lanes, const H: usize>(
    queries: &[f32],
    keys: &Keys<'_>,
    shape: AttentionShape,
    scratch: &mut Scratch,
    out: &mut [f32],
) {
    let (head_dim, stride) = (keys.pages.head_dim(), keys.pages.stride);
    let (first, count) = shape.first_and_count(keys.position);
    let end = first + count;
    let (mut maxima, mut totals) = ([f32::NEG_INFINITY; H], [0.0f32; H]);
    scratch.sums.fill(0.0);
    for chunk in first / CHUNK..end.div_ceil(CHUNK) {
        let start = chunk * CHUNK;
        let seen = first.max(start)..end.min(start + CHUNK);
        let pages = seen.start / PAGE..seen.end.div_ceil(PAGE);
        let lanes = pages.start * PAGE - start..pages.end * PAGE - start;
        score::<L, H>(
            queries,
            keys,
            shape.scale,
            pages.clone(),
            &mut scratch.scores,
        );
        for scores in &mut scratch.scores[..H] {
            scores[lanes.start..seen.start - start].fill(f32::NEG_INFINITY);
            scores[seen.end - start..lanes.end].fill(f32::NEG_INFINITY);
        }
        let mut weighed = [(0.0, 0.0); H];
        for (weighed, scores) in weighed.iter_mut().zip(&mut scratch.scores) {
            *weighed = weigh::<L>(&mut scores[lanes.clone()]);
        }
        add_values::<L, H>(keys, pages, &scratch.scores, &mut scratch.chunk_sums);

        for (head, (maximum, total)) in weighed.into_iter().enumerate() {
            let merged = maxima[head].max(maximum);
            let (old, new) = (
                exp_scalar(maxima[head] - merged),
                exp_scalar(maximum - merged),
            );
            totals[head] = totals[head] * old + total * new;
            let sums = &mut scratch.sums[head * stride..][..stride];
            for (sum, chunk_sum) in sums.iter_mut().zip(&scratch.chunk_sums[head * stride..]) {
                *sum = *sum * old + chunk_sum * new;
            }
            maxima[head] = merged;
        }
    }
    for (head, out) in out.chunks_exact_mut(head_dim).enumerate() {
        for (out, sum) in out.iter_mut().zip(&scratch.sums[head * stride..]) {
            *out = sum / totals[head];
        }
    }
}

/// `scores[head][key] = scale · query · key` for the keys of `pages`; other entries keep what they held.
#[inline(always)]
fn score<L: Lanes, const H: usize>(
    queries: &[f32],
    keys: &Keys<'_>,
    scale: f32,
    pages: std::ops::Range<usize>,
    scores: &mut [[f32; CHUNK]; HEADS],
) {
    let head_dim = keys.pages.head_dim();
    for page in pages {
        let head = keys.pages.page(keys.layer, keys.table[page], keys.head);
        let mut sums = [[L::splat(0.0); PAGE / LANES]; H];
        for (component, lane) in head.keys.as_chunks::<PAGE>().0.iter().enumerate() {
            let mut keys = [L::splat(0.0); PAGE / LANES];
            for (half, keys) in keys.iter_mut().enumerate() {
                // SAFETY: a lane holds PAGE values.
                *keys = unsafe { L::load(lane.as_ptr().add(half * LANES)) };
            }
            for (head, sums) in sums.iter_mut().enumerate() {
                let query = L::splat(queries[head * head_dim + component]);
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = query.fma(key, *sum);
                }
            }
        }
        let at = page * PAGE % CHUNK;
        for (scores, sums) in scores.iter_mut().zip(sums) {
            for (half, sum) in sums.into_iter().enumerate() {
                let scores = &mut scores[at + half * LANES..][..LANES];
                // SAFETY: the slice holds LANES values.
                unsafe { sum.mul(L::splat(scale)).store(scores.as_mut_ptr()) };
            }
        }
    }
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

/// `sums[head] = Σ weight · value` over the keys of `pages`, in order; a few lanes of all heads at a time.
#[inline(always)]
fn add_values<L: Lanes, const H: usize>(
    keys: &Keys<'_>,
    pages: std::ops::Range<usize>,
    weights: &[[f32; CHUNK]; HEADS],
    sums: &mut [f32],
) {
    let stride = keys.pages.stride;
    let groups = stride / LANES;
    let mut group = 0;
    while group < groups {
        if groups - group >= 2 {
            add_lanes::<L, H, 2>(keys, pages.clone(), weights, sums, group);
            group += 2;
        } else {
            add_lanes::<L, H, 1>(keys, pages.clone(), weights, sums, group);
            group += 1;
        }
    }
}

#[inline(always)]
fn add_lanes<L: Lanes, const H: usize, const G: usize>(
    keys: &Keys<'_>,
    pages: std::ops::Range<usize>,
    weights: &[[f32; CHUNK]; HEADS],
    sums: &mut [f32],
    group: usize,
) {
    let stride = keys.pages.stride;
    let mut totals = [[L::splat(0.0); G]; H];
    for page in pages {
        let head = keys.pages.page(keys.layer, keys.table[page], keys.head);
        let at = page * PAGE % CHUNK;
        for (slot, value) in head.values.chunks_exact(stride).enumerate() {
            let mut values = [L::splat(0.0); G];
            for (lane, values) in values.iter_mut().enumerate() {
                // SAFETY: a value's row is padded to whole lanes, of which there are `group + G` or more.
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
    for (head, totals) in totals.into_iter().enumerate() {
        for (lane, total) in totals.into_iter().enumerate() {
            let sum = &mut sums[head * stride + (group + lane) * LANES..][..LANES];
            // SAFETY: the slice holds LANES values.
            unsafe { total.store(sum.as_mut_ptr()) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeadNorms, Isa, Rope, Vector};
    use super::*;

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
