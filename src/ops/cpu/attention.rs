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
        let to = Disjoint::new(out);
        let seen: usize = rows
            .positions
            .iter()
            .map(|&position| shape.first_and_count(position).1)
            .sum();
        self.split(
            rows.len() * kv_heads,
            2 * seen * shape.heads * head_dim,
            |range| {
                let mut scratch = Scratch::new(head_dim);
                for index in range {
                    let (row, kv_head) = (index / kv_heads, index % kv_heads);
                    let table = rows.tables[rows.sequences[row] as usize];
                    for head in kv_head * group..(kv_head + 1) * group {
                        let query = &qkv.row(row)[head * head_dim..][..head_dim];
                        // SAFETY: a row's head is written by one thread alone.
                        let out =
                            unsafe { to.slice((row * shape.heads + head) * head_dim, head_dim) };
                        let keys = Keys {
                            pages,
                            layer,
                            head: kv_head,
                            table,
                            position: rows.positions[row],
                        };
                        attend(self.isa, query, &keys, shape, &mut scratch, out);
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

/// What one head's attention needs beside its output.
struct Scratch {
    scores: [f32; CHUNK],
    /// The chunk's and the running weighted sums, `[stride]`.
    chunk_sum: Vec<f32>,
    sum: Vec<f32>,
}

impl Scratch {
    fn new(head_dim: usize) -> Scratch {
        let stride = head_dim.next_multiple_of(LANES);
        Scratch {
            scores: [0.0; CHUNK],
            chunk_sum: vec![0.0; stride],
            sum: vec![0.0; stride],
        }
    }
}

vectorised! {
    fn attend(query: &[f32], keys: &Keys<'_>, shape: AttentionShape, scratch: &mut Scratch, out: &mut [f32]) =
        attend_kernel
}

#[inline(always)]
fn attend_kernel<L: Lanes>(
    query: &[f32],
    keys: &Keys<'_>,
    shape: AttentionShape,
    scratch: &mut Scratch,
    out: &mut [f32],
) {
    let (first, count) = shape.first_and_count(keys.position);
    let end = first + count;
    let (mut maximum, mut total) = (f32::NEG_INFINITY, 0.0f32);
    scratch.sum.fill(0.0);
    for chunk in first / CHUNK..end.div_ceil(CHUNK) {
        let start = chunk * CHUNK;
        let seen = first.max(start)..end.min(start + CHUNK);
        let pages = seen.start / PAGE..seen.end.div_ceil(PAGE);
        score::<L>(query, keys, shape.scale, pages.clone(), &mut scratch.scores);
        for (key, score) in scratch.scores.iter_mut().enumerate() {
            if !seen.contains(&(start + key)) {
                *score = f32::NEG_INFINITY;
            }
        }
        let (chunk_maximum, chunk_total) = weigh::<L>(&mut scratch.scores);
        add_values::<L>(keys, pages, &scratch.scores, &mut scratch.chunk_sum);

        let merged = maximum.max(chunk_maximum);
        let (old, new) = (
            exp_scalar(maximum - merged),
            exp_scalar(chunk_maximum - merged),
        );
        total = total * old + chunk_total * new;
        for (sum, chunk_sum) in scratch.sum.iter_mut().zip(&scratch.chunk_sum) {
            *sum = *sum * old + chunk_sum * new;
        }
        maximum = merged;
    }
    for (out, sum) in out.iter_mut().zip(&scratch.sum) {
        *out = sum / total;
    }
}

/// `scores[key] = scale · query · key` for the keys of `pages`; other entries keep what they held.
#[inline(always)]
fn score<L: Lanes>(
    query: &[f32],
    keys: &Keys<'_>,
    scale: f32,
    pages: std::ops::Range<usize>,
    scores: &mut [f32; CHUNK],
) {
    for page in pages {
        let head = keys.pages.page(keys.layer, keys.table[page], keys.head);
        let (mut low, mut high) = (L::splat(0.0), L::splat(0.0));
        for (component, lane) in query.iter().zip(head.keys.as_chunks::<PAGE>().0) {
            let component = L::splat(*component);
            // SAFETY: a lane holds PAGE = 32 values.
            unsafe {
                low = component.fma(L::load(lane.as_ptr()), low);
                high = component.fma(L::load(lane.as_ptr().add(LANES)), high);
            }
        }
        let at = page * PAGE % CHUNK;
        let scale = L::splat(scale);
        scores[at..at + LANES].copy_from_slice(&low.mul(scale).to_array());
        scores[at + LANES..at + PAGE].copy_from_slice(&high.mul(scale).to_array());
    }
}

/// Turns scores to weights eˢ⁻ᵐ; gives m and the sum of the weights.
#[inline(always)]
fn weigh<L: Lanes>(scores: &mut [f32; CHUNK]) -> (f32, f32) {
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

/// `sum = Σ weight · value` over the keys of `pages`, in order.
#[inline(always)]
fn add_values<L: Lanes>(
    keys: &Keys<'_>,
    pages: std::ops::Range<usize>,
    weights: &[f32; CHUNK],
    sum: &mut [f32],
) {
    let stride = keys.pages.stride;
    sum.fill(0.0);
    for page in pages {
        let head = keys.pages.page(keys.layer, keys.table[page], keys.head);
        let weights = &weights[page * PAGE % CHUNK..][..PAGE];
        for (group, sum) in sum.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
            let mut total = L::from_array(sum);
            for (weight, value) in weights.iter().zip(head.values.chunks_exact(stride)) {
                // SAFETY: a value's row is padded to whole lanes.
                let value = unsafe { L::load(value.as_ptr().add(group * LANES)) };
                total = L::splat(*weight).fma(value, total);
            }
            *sum = total.to_array();
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
