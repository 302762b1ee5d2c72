//! The walks over a page's keys and values: scores of queries, and weighted sums, whatever their products are of.

use std::ops::Range;

use super::super::lanes::{LANES, Lanes, by_count};
use super::super::pages::Kept;
use super::QUERIES;
use super::kernel::Sums;
use super::queries::Queries;
use crate::ops::{CHUNK, PAGE};

/// Calls `$kernel`, which gives its number of queries, with that as a constant, as many as the registers of `$lanes` hold at a
/// time.
macro_rules! by_queries {
    ($kernel:ident::<$lanes:ty $(, $more:ident)*>($count:expr, $($argument:expr),*)) => {
        let mut first = 0;
        while first < $count {
            let left = $count - first;
            first += if <$lanes as Sums>::Lanes::ROWS == QUERIES {
                by_count!(left, 12, H => $kernel::<$lanes $(, $more)*, H, 2>(first, $($argument),*))
            } else {
                by_count!(left, 4, H => $kernel::<$lanes $(, $more)*, H, 1>(first, $($argument),*))
            };
        }
    };
}

/// A page's keys beside queries.
#[derive(Clone, Copy)]
struct Page<'a> {
    /// `[stride][PAGE]`.
    keys: &'a [f32],
    /// `[stride][16]`.
    queries: &'a [f32],
    scale: f32,
    /// The place of the page's first key in the chunk.
    at: usize,
}

/// `scores[query][at + key] = scale · query · key` for the keys of a page before `end`, and perhaps more.
#[inline(always)]
pub fn score<S: Sums>(queries: &mut Queries, keys: &[f32], end: usize, scale: f32, at: usize) {
    let Queries { count, transposed, scores, .. } = queries;
    let page = Page { keys, queries: transposed, scale, at };
    by_queries!(score_page::<S>(*count, page, end, &mut *scores));
}

/// The scores of `H` queries from `first` on, `V` vectors of keys at a time. Gives `H`.
#[inline(always)]
fn score_page<S: Sums, const H: usize, const V: usize>(
    first: usize,
    page: Page<'_>,
    end: usize,
    scores: &mut [[f32; CHUNK]; QUERIES],
) -> usize {
    let scores = &mut scores[first..][..H];
    let mut key = 0;
    while key < end {
        key += if end - key > LANES {
            score_vectors::<S, H, V>(first, page, key, scores)
        } else {
            score_vectors::<S, H, 1>(first, page, key, scores)
        };
    }
    H
}

/// Those of `V` vectors of keys from `key` on. Gives the number of keys.
#[inline(always)]
fn score_vectors<S: Sums, const H: usize, const V: usize>(
    first: usize,
    page: Page<'_>,
    key: usize,
    scores: &mut [[f32; CHUNK]],
) -> usize {
    let mut sums = [[S::Lanes::splat(0.0); V]; H];
    let components = page.keys.as_chunks::<PAGE>().0.iter();
    for (keys, queries) in components.zip(page.queries.as_chunks::<LANES>().0) {
        let keys = &keys[key..][..V * LANES];
        let mut vectors = [S::Lanes::splat(0.0); V];
        for (n, vector) in vectors.iter_mut().enumerate() {
            // SAFETY: the slice holds V vectors.
            *vector = unsafe { S::Lanes::load(keys.as_ptr().add(n * LANES)) };
        }
        for (n, sums) in sums.iter_mut().enumerate() {
            // SAFETY: of QUERIES queries at the most, fewer than LANES, H begin at `first`.
            let query = S::Lanes::splat(unsafe { *queries.get_unchecked(first + n) });
            for (sum, vector) in sums.iter_mut().zip(vectors) {
                *sum = S::add_products(*sum, query, vector);
            }
        }
    }
    for (scores, sums) in scores.iter_mut().zip(sums) {
        for (n, sum) in sums.into_iter().enumerate() {
            let scores = &mut scores[page.at + key + n * LANES..][..LANES];
            // SAFETY: the slice holds LANES values.
            unsafe { sum.mul(S::Lanes::splat(page.scale)).store(scores.as_mut_ptr()) };
        }
    }
    V * LANES
}

/// `sums[query] += Σ weight · value` over `seen` of the rows of `values`, in order, of which `at` is the first one's place among
/// a query's weights.
#[inline(always)]
pub fn add_values<S: Sums, T: Kept, const EACH: usize>(
    count: usize,
    values: &[T],
    seen: Range<usize>,
    weights: &[[f32; EACH]; QUERIES],
    at: usize,
    sums: &mut [f32],
) {
    by_queries!(add_page::<S, T, EACH>(count, values, seen.clone(), weights, at, &mut *sums));
}

/// The sums of `H` queries from `first` on, `V` vectors of values at a time. Gives `H`.
#[inline(always)]
fn add_page<S: Sums, T: Kept, const EACH: usize, const H: usize, const V: usize>(
    first: usize,
    values: &[T],
    seen: Range<usize>,
    weights: &[[f32; EACH]; QUERIES],
    at: usize,
    sums: &mut [f32],
) -> usize {
    let stride = sums.len() / QUERIES;
    let values = &values[seen.start * stride..seen.end * stride];
    let sums = &mut sums[first * stride..(first + H) * stride];
    let weights = weights[first..][..H].as_flattened();
    let weights = &weights[at + seen.start..];
    let whole = stride / (V * LANES) * (V * LANES);
    for lane in (0..whole).step_by(V * LANES) {
        // SAFETY: `values` are `seen.len()` rows, of which each has at least `lane` and V vectors; so have the sums of
        // each of H queries, and their weights are EACH apart, the last row's at their end or before.
        unsafe { add_vectors::<S, T, EACH, H, V>(values, seen.len(), weights, &mut *sums, lane) };
    }
    for lane in (whole..stride).step_by(LANES) {
        // SAFETY: as above.
        unsafe { add_vectors::<S, T, EACH, H, 1>(values, seen.len(), weights, &mut *sums, lane) };
    }
    H
}

/// # Safety
/// `count` rows of values, and H rows of sums, hold V vectors from `lane` on; weights of the rows are there for H queries.
#[inline(always)]
unsafe fn add_vectors<S: Sums, T: Kept, const EACH: usize, const H: usize, const V: usize>(
    values: &[T],
    count: usize,
    weights: &[f32],
    sums: &mut [f32],
    lane: usize,
) {
    let stride = sums.len() / H;
    let mut totals = [[S::Lanes::splat(0.0); V]; H];
    // SAFETY: the caller vouches for all of it.
    unsafe {
        for (query, totals) in totals.iter_mut().enumerate() {
            for (n, total) in totals.iter_mut().enumerate() {
                *total = S::Lanes::load(sums.as_ptr().add(query * stride + lane + n * LANES));
            }
        }
        for row in 0..count {
            let mut vectors = [S::Lanes::splat(0.0); V];
            for (n, vector) in vectors.iter_mut().enumerate() {
                *vector = T::load(values.as_ptr().add(row * stride + lane + n * LANES));
            }
            for (query, totals) in totals.iter_mut().enumerate() {
                let weight = S::Lanes::splat(*weights.as_ptr().add(query * EACH + row));
                for (total, vector) in totals.iter_mut().zip(vectors) {
                    *total = S::add_products(*total, weight, vector);
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
