//! The arithmetic of attention: scores, weights, and weighted sums, chunk by chunk.

use std::ops::Range;

use super::super::Isa;
use super::super::lanes::{LANES, Lanes, exp, vectorised};
use super::super::pages::{Kept, PageHead, PagesOf};
use super::QUERIES;
use super::queries::Queries;
use crate::ops::{CHUNK, PAGE};

/// The keys and values of one head of a sequence.
pub struct Keys<'a, T: Kept> {
    pub pages: &'a PagesOf<T>,
    pub layer: usize,
    pub head: usize,
    pub table: &'a [u32],
}

impl<T: Kept> Keys<'_, T> {
    #[inline(always)]
    fn page(&self, page: usize) -> PageHead<'_, T> {
        self.pages.page(self.layer, self.table[page], self.head)
    }
}

/// A number as pages keep it, with the kernel over pages of such.
pub trait Attended: Kept {
    /// Leaves the attention of each of `all` in its sums. `columns` is room for a page's keys, `[stride][PAGE]`.
    fn attend(
        isa: Isa,
        keys: &Keys<'_, Self>,
        scale: f32,
        all: &mut [Queries],
        columns: &mut [f32],
    );
}

impl Attended for f32 {
    fn attend(
        isa: Isa,
        keys: &Keys<'_, f32>,
        scale: f32,
        all: &mut [Queries],
        columns: &mut [f32],
    ) {
        attend_f32(isa, keys, scale, all, columns);
    }
}

impl Attended for u16 {
    fn attend(
        isa: Isa,
        keys: &Keys<'_, u16>,
        scale: f32,
        all: &mut [Queries],
        columns: &mut [f32],
    ) {
        attend_bf16(isa, keys, scale, all, columns);
    }
}

vectorised! {
    fn attend_f32(keys: &Keys<'_, f32>, scale: f32, all: &mut [Queries], columns: &mut [f32]) = attend_kernel
}

vectorised! {
    fn attend_bf16(keys: &Keys<'_, u16>, scale: f32, all: &mut [Queries], columns: &mut [f32]) = attend_kernel
}

#[inline(always)]
fn attend_kernel<L: Lanes>(
    keys: &Keys<'_, impl Kept>,
    scale: f32,
    all: &mut [Queries],
    columns: &mut [f32],
) {
    let (mut first, mut end) = (usize::MAX, 0);
    for queries in all.iter_mut() {
        queries.transpose();
        first = first.min(queries.all_seen.start);
        end = end.max(queries.all_seen.end);
    }
    for start in (first / CHUNK * CHUNK..end).step_by(CHUNK) {
        let seen = first.max(start)..end.min(start + CHUNK);
        for page in seen.start / PAGE..seen.end.div_ceil(PAGE) {
            let page_start = page * PAGE;
            transpose_keys::<L, _>(&keys.page(page), seen.end - page_start, columns);
            for queries in all.iter_mut() {
                if !queries.seen_of_page(page_start).is_empty() {
                    score::<L>(queries, columns, scale, page_start - start);
                }
            }
        }
        for queries in all.iter_mut() {
            weigh_chunk::<L>(queries, start);
        }
        for page in seen.start / PAGE..seen.end.div_ceil(PAGE) {
            let page_start = page * PAGE;
            let values = keys.page(page).values;
            for queries in all.iter_mut() {
                let seen = queries.seen_of_page(page_start);
                if !seen.is_empty() {
                    add_values::<L, _>(queries, values, seen, page_start - start);
                }
            }
        }
        for queries in all.iter_mut() {
            merge_chunk::<L>(queries);
        }
    }
    for queries in all.iter_mut() {
        let stride = queries.sums.len() / QUERIES;
        let sums = queries.sums.chunks_exact_mut(stride);
        for (sums, total) in sums.zip(queries.totals).take(queries.count) {
            for sum in sums {
                *sum /= total;
            }
        }
    }
}

/// A page's first `count` keys, or more, `[PAGE][stride]` to `[stride][PAGE]`: sixteen scores grow side by side, a key
/// a lane.
#[inline(always)]
fn transpose_keys<L: Lanes, T: Kept>(page: &PageHead<'_, T>, count: usize, columns: &mut [f32]) {
    let stride = page.keys.len() / PAGE;
    for key in (0..PAGE.min(count)).step_by(LANES) {
        for component in (0..stride).step_by(LANES) {
            let from = page.keys[key * stride + component..].as_ptr();
            let to = columns[component * PAGE + key..].as_mut_ptr();
            // SAFETY: a page holds a multiple of sixteen keys, and each a multiple of sixteen components.
            unsafe { T::transpose::<L>(from, stride, to, PAGE) };
        }
    }
}

/// Calls `$kernel` with the number of queries as a constant, as many as the registers hold at a time.
macro_rules! by_queries {
    ($kernel:ident::<$lanes:ident $(, $kept:ident)?>($count:expr, $($argument:expr),*)) => {
        let mut first = 0;
        while first < $count {
            let left = ($count - first).min($lanes::ROWS);
            first += if $lanes::ROWS == QUERIES {
                match left {
                    1 => $kernel::<$lanes $(, $kept)?, 1, 2>(first, $($argument),*),
                    2 => $kernel::<$lanes $(, $kept)?, 2, 2>(first, $($argument),*),
                    3 => $kernel::<$lanes $(, $kept)?, 3, 2>(first, $($argument),*),
                    4 => $kernel::<$lanes $(, $kept)?, 4, 2>(first, $($argument),*),
                    5 => $kernel::<$lanes $(, $kept)?, 5, 2>(first, $($argument),*),
                    6 => $kernel::<$lanes $(, $kept)?, 6, 2>(first, $($argument),*),
                    7 => $kernel::<$lanes $(, $kept)?, 7, 2>(first, $($argument),*),
                    8 => $kernel::<$lanes $(, $kept)?, 8, 2>(first, $($argument),*),
                    9 => $kernel::<$lanes $(, $kept)?, 9, 2>(first, $($argument),*),
                    10 => $kernel::<$lanes $(, $kept)?, 10, 2>(first, $($argument),*),
                    11 => $kernel::<$lanes $(, $kept)?, 11, 2>(first, $($argument),*),
                    _ => $kernel::<$lanes $(, $kept)?, 12, 2>(first, $($argument),*),
                }
            } else {
                match left {
                    1 => $kernel::<$lanes $(, $kept)?, 1, 1>(first, $($argument),*),
                    2 => $kernel::<$lanes $(, $kept)?, 2, 1>(first, $($argument),*),
                    3 => $kernel::<$lanes $(, $kept)?, 3, 1>(first, $($argument),*),
                    _ => $kernel::<$lanes $(, $kept)?, 4, 1>(first, $($argument),*),
                }
            };
        }
    };
}

/// `scores[query][at + key] = scale · query · key` for a page's keys, in columns.
#[inline(always)]
fn score<L: Lanes>(queries: &mut Queries, columns: &[f32], scale: f32, at: usize) {
    let Queries { count, transposed, scores, .. } = queries;
    by_queries!(score_page::<L>(*count, columns, (&*transposed, *count), scale, at, &mut *scores));
}

/// The scores of `H` queries from `first` on, `V` vectors of keys at a time. Gives `H`.
#[inline(always)]
fn score_page<L: Lanes, const H: usize, const V: usize>(
    first: usize,
    columns: &[f32],
    (queries, count): (&[f32], usize),
    scale: f32,
    at: usize,
    scores: &mut [[f32; CHUNK]; QUERIES],
) -> usize {
    let columns = columns.as_chunks::<PAGE>().0;
    for part in (0..PAGE).step_by(V * LANES) {
        let mut sums = [[L::splat(0.0); V]; H];
        for (column, queries) in columns.iter().zip(queries.chunks_exact(count)) {
            let mut keys = [L::splat(0.0); V];
            for (n, keys) in keys.iter_mut().enumerate() {
                // SAFETY: a column holds PAGE values, a multiple of V · LANES.
                *keys = unsafe { L::load(column.as_ptr().add(part + n * LANES)) };
            }
            for (n, sums) in sums.iter_mut().enumerate() {
                // SAFETY: of `count` queries there are H from `first` on.
                let query = L::splat(unsafe { *queries.get_unchecked(first + n) });
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

/// Turns the chunk's scores to weights, and begins its sums: each query's maximum and total so far.
#[inline(always)]
fn weigh_chunk<L: Lanes>(queries: &mut Queries, start: usize) {
    queries.weighed.fill((f32::NEG_INFINITY, 0.0));
    queries.chunk_sums.fill(0.0);
    if queries.seen_of_chunk(start).is_empty() {
        return;
    }
    let scored = queries.scored(start);
    for query in 0..queries.count {
        let scores = &mut queries.scores[query];
        let seen = &queries.seen[query];
        let seen = seen.start.max(start)..seen.end.min(start + CHUNK);
        if seen.is_empty() {
            scores[scored.clone()].fill(0.0);
        } else {
            scores[scored.start..seen.start - start].fill(f32::NEG_INFINITY);
            scores[seen.end - start..scored.end].fill(f32::NEG_INFINITY);
            queries.weighed[query] = weigh::<L>(&mut scores[scored.clone()]);
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

/// `chunk_sums[query] += Σ weight · value` over a page's keys, in order, of which `at` is the first one's place in the
/// chunk.
#[inline(always)]
fn add_values<L: Lanes, T: Kept>(
    queries: &mut Queries,
    values: &[T],
    seen: Range<usize>,
    at: usize,
) {
    let Queries { count, scores, chunk_sums, .. } = queries;
    by_queries!(add_page::<L, T>(*count, values, seen.clone(), &*scores, at, &mut *chunk_sums));
}

/// The sums of `H` queries from `first` on, `V` vectors of values at a time. Gives `H`.
#[inline(always)]
fn add_page<L: Lanes, T: Kept, const H: usize, const V: usize>(
    first: usize,
    values: &[T],
    seen: Range<usize>,
    weights: &[[f32; CHUNK]; QUERIES],
    at: usize,
    sums: &mut [f32],
) -> usize {
    let stride = values.len() / PAGE;
    let values = &values[seen.start * stride..seen.end * stride];
    let sums = &mut sums[first * stride..(first + H) * stride];
    let weights = weights[first..][..H].as_flattened();
    let weights = &weights[at + seen.start..];
    let whole = stride / (V * LANES) * (V * LANES);
    for lane in (0..whole).step_by(V * LANES) {
        // SAFETY: `values` are those of `seen.len()` keys, of which each has at least `lane` and V vectors; so have
        // the sums of each of H queries, and their weights are CHUNK apart, the last key's at their end or before.
        unsafe { add_vectors::<L, T, H, V>(values, seen.len(), weights, &mut *sums, lane) };
    }
    for lane in (whole..stride).step_by(LANES) {
        // SAFETY: as above.
        unsafe { add_vectors::<L, T, H, 1>(values, seen.len(), weights, &mut *sums, lane) };
    }
    H
}

/// # Safety
/// `count` rows of values, and H rows of sums, hold V vectors from `lane` on; weights of the keys are there for H queries.
#[inline(always)]
unsafe fn add_vectors<L: Lanes, T: Kept, const H: usize, const V: usize>(
    values: &[T],
    count: usize,
    weights: &[f32],
    sums: &mut [f32],
    lane: usize,
) {
    let stride = sums.len() / H;
    let mut totals = [[L::splat(0.0); V]; H];
    // SAFETY: the caller vouches for all of it.
    unsafe {
        for (query, totals) in totals.iter_mut().enumerate() {
            for (n, total) in totals.iter_mut().enumerate() {
                *total = L::load(sums.as_ptr().add(query * stride + lane + n * LANES));
            }
        }
        for key in 0..count {
            let mut vectors = [L::splat(0.0); V];
            for (n, vector) in vectors.iter_mut().enumerate() {
                *vector = T::load(values.as_ptr().add(key * stride + lane + n * LANES));
            }
            for (query, totals) in totals.iter_mut().enumerate() {
                let weight = L::splat(*weights.as_ptr().add(query * CHUNK + key));
                for (total, vector) in totals.iter_mut().zip(vectors) {
                    *total = weight.fma(vector, *total);
                }
            }
        }
        for (query, totals) in totals.into_iter().enumerate() {
            for (n, total) in totals.into_iter().enumerate() {
                total.store(sums.as_mut_ptr().add(query * stride + lane + n * LANES));
            }
        }
    }
}

/// Adds the chunk's sums to the running ones, both relative to the larger of their maxima.
#[inline(always)]
fn merge_chunk<L: Lanes>(queries: &mut Queries) {
    let stride = queries.sums.len() / QUERIES;
    for query in 0..queries.count {
        let (maximum, total) = queries.weighed[query];
        if total == 0.0 {
            continue;
        }
        let merged = queries.maxima[query].max(maximum);
        let old = exp(L::splat(queries.maxima[query] - merged));
        let new = exp(L::splat(maximum - merged));
        queries.totals[query] = queries.totals[query] * first(old) + total * first(new);
        queries.maxima[query] = merged;
        let sums = queries.sums[query * stride..][..stride].as_chunks_mut().0;
        let chunk_sums = queries.chunk_sums[query * stride..].as_chunks().0;
        for (sum, chunk_sum) in sums.iter_mut().zip(chunk_sums) {
            let chunk_sum = L::from_array(chunk_sum).mul(new);
            *sum = L::from_array(sum).mul(old).add(chunk_sum).to_array();
        }
    }
}

#[inline(always)]
fn first<L: Lanes>(lanes: L) -> f32 {
    lanes.to_array()[0]
}
