//! The walks over a page's keys and values: scores of queries, and weighted sums, whatever their products are of.

use std::marker::PhantomData;
use std::ops::Range;

use super::super::kept::Kept;
use super::super::lanes::{Counted, LANES, Lanes, by_count};
use super::QUERIES;
use super::kernel::{Scored, Sums};
use super::queries::Queries;
use crate::{CHUNK, PAGE};

/// A page's keys beside queries.
#[derive(Clone, Copy)]
struct Page<'a, T> {
    /// As pages have them.
    keys: &'a [T],
    /// `[stride][16]`.
    queries: &'a [f32],
    /// See [`super::kernel::PagePart::next`].
    next: *const u8,
    scored: Scored,
}

/// `scores[query][at + key] = scale · query · key` for the keys of a page before `end`, and perhaps more. `keys` lie as pages have
/// them.
#[inline(always)]
pub fn score<S: Sums, T: Kept>(queries: &mut Queries, keys: &[T], next: *const u8, scored: Scored) {
    let Queries { count, transposed, scores, .. } = queries;
    let page = Page { keys, queries: transposed, next, scored };
    let mut first = 0;
    while first < *count {
        let of = Scores { first, page, scores: &mut *scores, sums: PhantomData::<S> };
        first += by_count::<S, _>(*count - first, of);
    }
}

/// The scores of queries from `first` on.
struct Scores<'p, S, T> {
    first: usize,
    page: Page<'p, T>,
    scores: &'p mut [[f32; CHUNK]; QUERIES],
    sums: PhantomData<S>,
}

impl<S: Sums, T: Kept> Counted for Scores<'_, S, T> {
    const MOST: usize = S::Lanes::ROWS;

    #[inline(always)]
    fn call<const H: usize>(self) -> usize {
        let Scores { first, page, scores, .. } = self;
        // Registers that hold all queries hold two vectors of keys beside them.
        if const { S::Lanes::ROWS == QUERIES } {
            score_page::<S, T, H, 2>(first, page, scores)
        } else {
            score_page::<S, T, H, 1>(first, page, scores)
        }
    }
}

/// The scores of `H` queries from `first` on, `V` vectors of keys at a time. Gives `H`.
#[inline(always)]
fn score_page<S: Sums, T: Kept, const H: usize, const V: usize>(
    first: usize,
    page: Page<'_, T>,
    scores: &mut [[f32; CHUNK]; QUERIES],
) -> usize {
    let scores = &mut scores[first..][..H];
    let end = page.scored.end;
    let mut key = 0;
    while key < end {
        key += if end - key > LANES {
            score_vectors::<S, T, H, V>(first, page, key, scores)
        } else {
            score_vectors::<S, T, H, 1>(first, page, key, scores)
        };
    }
    H
}

/// Those of `V` vectors of keys from `key` on. Gives the number of keys.
#[inline(always)]
fn score_vectors<S: Sums, T: Kept, const H: usize, const V: usize>(
    first: usize,
    page: Page<'_, T>,
    key: usize,
    scores: &mut [[f32; CHUNK]],
) -> usize {
    let mut sums = [[S::Lanes::splat(0.0); V]; H];
    let components = page.keys.chunks_exact(2 * PAGE);
    let queries = page.queries.as_chunks::<LANES>().0.as_chunks::<2>().0;
    for (row, (keys, queries)) in components.zip(queries).enumerate() {
        if !page.next.is_null() {
            prefetch_lines::<S::Lanes>(
                page.next,
                row * 2 * PAGE * size_of::<T>(),
                2 * PAGE * size_of::<T>(),
            );
        }
        // Two components of each vector's keys.
        let mut vectors = [[S::Lanes::splat(0.0); 2]; V];
        for (n, vector) in vectors.iter_mut().enumerate() {
            let keys = &keys[T::TOGETHER * (key + n * LANES)..];
            // SAFETY: two rows of a page's keys are there, and V vectors of keys from `key` on.
            *vector = unsafe { T::load_pair(keys.as_ptr(), PAGE) };
        }
        for (component, queries) in queries.iter().enumerate() {
            for (n, sums) in sums.iter_mut().enumerate() {
                // SAFETY: of QUERIES queries at the most, fewer than LANES, H begin at `first`.
                let query = S::Lanes::splat(unsafe { *queries.get_unchecked(first + n) });
                for (sum, vector) in sums.iter_mut().zip(vectors) {
                    *sum = S::add_products(*sum, query, vector[component]);
                }
            }
        }
    }
    let Scored { scale, at, .. } = page.scored;
    for (scores, sums) in scores.iter_mut().zip(sums) {
        for (n, sum) in sums.into_iter().enumerate() {
            let scores = &mut scores[at + key + n * LANES..][..LANES];
            // SAFETY: the slice holds LANES values.
            unsafe { sum.mul(S::Lanes::splat(scale)).store(scores.as_mut_ptr()) };
        }
    }
    V * LANES
}

/// Prefetches the cache lines of `bytes` bytes, `at` bytes behind `from`.
#[inline(always)]
fn prefetch_lines<L: Lanes>(from: *const u8, at: usize, bytes: usize) {
    /// Of a cache line.
    const LINE: usize = 64;
    for line in (0..bytes).step_by(LINE) {
        L::prefetch_far(from.wrapping_add(at + line));
    }
}

/// Rows of a page's values.
#[derive(Clone)]
pub struct ValueRows<'a, T> {
    /// `[rows][stride]`, all of the page.
    pub values: &'a [T],
    /// Those that count.
    pub seen: Range<usize>,
    /// See [`super::kernel::PagePart::next`].
    pub next: *const u8,
}

/// `sums[query] += Σ weight · value` over the rows of values that are seen, in order, of which `at` is the page's place among a
/// query's weights.
#[inline(always)]
pub fn add_values<S: Sums, T: Kept, const EACH: usize>(
    count: usize,
    rows: ValueRows<'_, T>,
    weights: &[[f32; EACH]; QUERIES],
    at: usize,
    sums: &mut [f32],
) {
    let (rows, mut first) = (&rows, 0);
    while first < count {
        let sums = &mut *sums;
        let of = Additions { first, rows, weights, at, sums, of: PhantomData::<S> };
        first += by_count::<S, _>(count - first, of);
    }
}

/// The weighted sums of queries from `first` on.
struct Additions<'p, S, T, const EACH: usize> {
    first: usize,
    rows: &'p ValueRows<'p, T>,
    weights: &'p [[f32; EACH]; QUERIES],
    at: usize,
    sums: &'p mut [f32],
    of: PhantomData<S>,
}

impl<S: Sums, T: Kept, const EACH: usize> Counted for Additions<'_, S, T, EACH> {
    const MOST: usize = S::Lanes::ROWS;

    #[inline(always)]
    fn call<const H: usize>(self) -> usize {
        let Additions { first, rows, weights, at, sums, .. } = self;
        if const { S::Lanes::ROWS == QUERIES } {
            add_page::<S, T, EACH, H, 2>(first, rows, weights, at, sums)
        } else {
            add_page::<S, T, EACH, H, 1>(first, rows, weights, at, sums)
        }
    }
}

/// The sums of `H` queries from `first` on, `V` vectors of values at a time. Gives `H`.
#[inline(always)]
fn add_page<S: Sums, T: Kept, const EACH: usize, const H: usize, const V: usize>(
    first: usize,
    rows: &ValueRows<'_, T>,
    weights: &[[f32; EACH]; QUERIES],
    at: usize,
    sums: &mut [f32],
) -> usize {
    let stride = sums.len() / QUERIES;
    let sums = &mut sums[first * stride..(first + H) * stride];
    let weights = weights[first..][..H].as_flattened();
    let weights = &weights[at + rows.seen.start..];
    assert!(rows.values.len() >= rows.seen.end * stride, "fewer values than are seen");
    let mut lane = 0;
    // Few queries leave registers for more of a row: what lies together is read together.
    if const { V > 1 && H <= 3 } {
        lane = add_columns::<S, T, EACH, H, 8>(rows, weights, &mut *sums, lane);
    }
    if const { V > 1 && H <= 6 } {
        lane = add_columns::<S, T, EACH, H, 4>(rows, weights, &mut *sums, lane);
    }
    lane = add_columns::<S, T, EACH, H, V>(rows, weights, &mut *sums, lane);
    add_columns::<S, T, EACH, H, 1>(rows, weights, sums, lane);
    H
}

/// The sums of as many whole `V` vectors as there are from `lane` on. Gives the lane behind them. `rows` has all rows that are seen.
#[inline(always)]
fn add_columns<S: Sums, T: Kept, const EACH: usize, const H: usize, const V: usize>(
    rows: &ValueRows<'_, T>,
    weights: &[f32],
    sums: &mut [f32],
    mut lane: usize,
) -> usize {
    let stride = sums.len() / H;
    while lane + V * LANES <= stride {
        // SAFETY: there are the values of all rows that are seen, of which each has at least `lane` and V vectors; so have the
        // sums of each of H queries, and their weights are EACH apart, the last row's at their end or before.
        unsafe { add_vectors::<S, T, EACH, H, V>(rows, weights, &mut *sums, lane) };
        lane += V * LANES;
    }
    lane
}

/// # Safety
/// The rows of values that are seen, and H rows of sums, hold V vectors from `lane` on; weights of the rows are there for H queries.
#[inline(always)]
unsafe fn add_vectors<S: Sums, T: Kept, const EACH: usize, const H: usize, const V: usize>(
    rows: &ValueRows<'_, T>,
    weights: &[f32],
    sums: &mut [f32],
    lane: usize,
) {
    let stride = sums.len() / H;
    let ValueRows { values, ref seen, next } = *rows;
    let mut totals = [[S::Lanes::splat(0.0); V]; H];
    // SAFETY: the caller vouches for all of it.
    unsafe {
        for (query, totals) in totals.iter_mut().enumerate() {
            for (n, total) in totals.iter_mut().enumerate() {
                *total = S::Lanes::load(sums.as_ptr().add(query * stride + lane + n * LANES));
            }
        }
        for (place, row) in seen.clone().enumerate() {
            let at = row * stride + lane;
            if !next.is_null() {
                prefetch_lines::<S::Lanes>(next, at * size_of::<T>(), V * LANES * size_of::<T>());
            }
            let mut vectors = [S::Lanes::splat(0.0); V];
            for (n, vector) in vectors.iter_mut().enumerate() {
                *vector = T::load(values.as_ptr().add(at + n * LANES));
            }
            for (query, totals) in totals.iter_mut().enumerate() {
                let weight = S::Lanes::splat(*weights.as_ptr().add(query * EACH + place));
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
