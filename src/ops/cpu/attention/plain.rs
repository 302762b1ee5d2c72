//! Scores and weighted sums by products of f32.

use std::marker::PhantomData;
use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::super::pages::{Kept, PageHead};
use super::QUERIES;
use super::kernel::{Products, by_queries, weigh_chunk};
use super::queries::Queries;
use crate::ops::{CHUNK, PAGE};

/// Products of f32, whatever the pages hold.
pub struct Plain<L>(PhantomData<L>);

impl<T: Kept, L: Lanes> Products<T> for Plain<L> {
    #[inline(always)]
    fn begin(queries: &mut Queries) {
        queries.transpose();
    }

    /// `[PAGE][stride]` to `[stride][PAGE]`: sixteen scores grow side by side, a key a lane.
    #[inline(always)]
    fn take_keys(page: &PageHead<'_, T>, count: usize, columns: &mut [f32]) {
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

    #[inline(always)]
    fn score(queries: &mut Queries, columns: &[f32], scale: f32, at: usize) {
        let Queries { count, transposed, scores, .. } = queries;
        by_queries!(score_page::<L>(
            *count,
            columns,
            (&*transposed, *count),
            scale,
            at,
            &mut *scores
        ));
    }

    #[inline(always)]
    fn weigh(queries: &mut Queries, start: usize) {
        weigh_chunk::<L>(queries, start);
    }

    #[inline(always)]
    fn take_values(_page: &PageHead<'_, T>, _seen: Range<usize>, _columns: &mut [f32]) {}

    #[inline(always)]
    fn add_values(
        queries: &mut Queries,
        page: &PageHead<'_, T>,
        _columns: &[f32],
        seen: Range<usize>,
        at: usize,
    ) {
        let Queries { count, scores, chunk_sums, .. } = queries;
        by_queries!(add_page::<L, T>(
            *count,
            page.values,
            seen.clone(),
            &*scores,
            at,
            &mut *chunk_sums
        ));
    }
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
