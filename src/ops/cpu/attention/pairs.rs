//! Attention over pages of bf16 where the machine multiplies pairs of bf16: queries and weights are rounded to bf16, products
//! are the instruction's, sums are f32.
//!
//! Scores take components in pairs, sums take keys in pairs from a page's first: a row's own order, whatever is beside it. A
//! total adds the rounded weights, so that a mean of equal values is that value.

use std::arch::x86_64::*;
use std::mem::transmute;
use std::ops::Range;

use super::super::lanes::{Avx512, LANES, Lanes};
use super::super::pages::PageHead;
use super::QUERIES;
use super::kernel::{Keys, Products, attend_kernel, by_queries, weigh_chunk};
use super::queries::Queries;
use crate::ops::{CHUNK, PAGE};

/// What a head's length must be a multiple of.
pub const MULTIPLE: usize = 2 * LANES;

/// # Safety
/// The machine has AVX-512 with bf16, and a head's length is a multiple of [`MULTIPLE`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma,f16c")]
pub unsafe fn attend(keys: &Keys<'_, u16>, scale: f32, all: &mut [Queries], columns: &mut [f32]) {
    attend_kernel::<Avx512, u16, Pairs>(keys, scale, all, columns);
}

/// Two bf16 in each lane. Only [`attend`] makes use of it, after [`crate::ops::cpu::Isa`] found the instructions; that is what
/// every unsafe block here stands on, beside what is said there.
struct Pairs;

/// Lanes whose bits may be pairs of bf16.
trait PairLanes: Lanes {
    /// Plus both products of each lane's pairs.
    fn add_products(self, a: Self, b: Self) -> Self;
}

impl PairLanes for Avx512 {
    #[inline(always)]
    fn add_products(self, a: Avx512, b: Avx512) -> Avx512 {
        // SAFETY: see the type [`Pairs`]; sixteen lanes of 32 bits are as many pairs of bf16.
        unsafe {
            let a = transmute::<__m512, __m512bh>(a.0);
            let b = transmute::<__m512, __m512bh>(b.0);
            Avx512(_mm512_dpbf16_ps(self.0, a, b))
        }
    }
}

impl Products<u16> for Pairs {
    /// `[head_dim / 2][count]`, two components a number.
    #[inline(always)]
    fn begin(queries: &mut Queries) {
        let mut rounded = std::mem::take(&mut queries.rounded);
        rounded.resize(queries.rows.len(), 0);
        for (values, to) in queries.rows.chunks(LANES).zip(rounded.chunks_mut(LANES)) {
            // A head's length is a multiple of sixteen.
            if let (Some(values), Some(to)) = (values.first_chunk(), to.first_chunk_mut()) {
                // SAFETY: see the type; sixteen bf16 are as many bits.
                *to = unsafe {
                    transmute::<__m256bh, [u16; LANES]>(_mm512_cvtneps_pbh(
                        Avx512::from_array(values).0,
                    ))
                };
            }
        }
        queries.transpose_pairs(&rounded);
        queries.rounded = rounded;
    }

    /// `[PAGE][stride]` to `[stride / 2][PAGE]`, two components a number.
    #[inline(always)]
    fn take_keys(page: &PageHead<'_, u16>, count: usize, columns: &mut [f32]) {
        let pairs = page.keys.len() / PAGE / 2;
        for key in (0..PAGE.min(count)).step_by(LANES) {
            for pair in (0..pairs).step_by(LANES) {
                let from = page.keys[2 * (key * pairs + pair)..].as_ptr();
                let to = columns[pair * PAGE + key..].as_mut_ptr();
                // SAFETY: a page holds a multiple of sixteen keys, and each a multiple of sixteen pairs.
                unsafe { Avx512::transpose(from.cast(), pairs, to, PAGE) };
            }
        }
    }

    #[inline(always)]
    fn score(queries: &mut Queries, columns: &[f32], scale: f32, at: usize) {
        let Queries { count, transposed, scores, .. } = queries;
        by_queries!(score_pairs::<Avx512>(
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
        weigh_chunk::<Avx512>(queries, start);
        if queries.seen_of_chunk(start).is_empty() {
            return;
        }
        let scored = queries.scored(start);
        for query in 0..queries.count {
            let weights = queries.scores[query][scored.clone()].as_chunks::<LANES>().0;
            let pairs = &mut queries.pairs[query][scored.start / 2..];
            let mut total = Avx512::splat(0.0);
            for (weights, pairs) in weights.iter().zip(pairs.as_chunks_mut::<{ LANES / 2 }>().0) {
                // SAFETY: see the type; sixteen bf16 are eight pairs.
                unsafe {
                    let rounded = _mm512_cvtneps_pbh(Avx512::from_array(weights).0);
                    *pairs = transmute::<__m256bh, [u32; LANES / 2]>(rounded);
                }
                // SAFETY: sixteen bf16 were just written.
                total = total.add(unsafe { Avx512::load_bf16_row(pairs.as_ptr().cast()) });
            }
            queries.weighed[query].1 = total.sum();
        }
    }

    /// `[PAGE / 2][stride]`, a component of two keys a number; the last one stands beside zeros where it has no other.
    #[inline(always)]
    fn take_values(page: &PageHead<'_, u16>, seen: Range<usize>, columns: &mut [f32]) {
        let stride = page.values.len() / PAGE;
        for pair in seen.start / 2..seen.end.div_ceil(2) {
            for lane in (0..stride).step_by(LANES) {
                let from = page.values[2 * pair * stride + lane..].as_ptr();
                let to = columns[pair * stride + lane..].as_mut_ptr();
                // SAFETY: see the type; sixteen components of both keys are in the page, and in `columns`.
                unsafe {
                    let first = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
                    let second = _mm256_loadu_si256(from.add(stride).cast());
                    let second = _mm512_slli_epi32::<16>(_mm512_cvtepu16_epi32(second));
                    let both = _mm512_or_si512(first, second);
                    let is_whole = 2 * pair + 1 < seen.end;
                    _mm512_storeu_si512(to.cast(), if is_whole { both } else { first });
                }
            }
        }
    }

    #[inline(always)]
    fn add_values(
        queries: &mut Queries,
        _page: &PageHead<'_, u16>,
        columns: &[f32],
        seen: Range<usize>,
        at: usize,
    ) {
        let Queries { count, pairs, chunk_sums, .. } = queries;
        let seen = seen.start / 2..seen.end.div_ceil(2);
        by_queries!(add_pairs::<Avx512>(
            *count,
            columns,
            seen.clone(),
            &*pairs,
            at / 2,
            &mut *chunk_sums
        ));
    }
}

/// The scores of `H` queries from `first` on, `V` vectors of keys at a time. Gives `H`.
#[inline(always)]
fn score_pairs<L: PairLanes, const H: usize, const V: usize>(
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
                // SAFETY: a column holds PAGE pairs, a multiple of V · LANES.
                *keys = unsafe { L::load(column.as_ptr().add(part + n * LANES)) };
            }
            for (n, sums) in sums.iter_mut().enumerate() {
                // SAFETY: of `count` queries there are H from `first` on.
                let query = L::splat(unsafe { *queries.get_unchecked(first + n) });
                for (sum, key) in sums.iter_mut().zip(keys) {
                    *sum = sum.add_products(query, key);
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

/// The sums of `H` queries from `first` on, over the page's pairs of keys `seen`, of which `at` is the first one's place in the
/// chunk; `V` vectors of values at a time. Gives `H`.
#[inline(always)]
fn add_pairs<L: PairLanes, const H: usize, const V: usize>(
    first: usize,
    values: &[f32],
    seen: Range<usize>,
    weights: &[[u32; CHUNK / 2]; QUERIES],
    at: usize,
    sums: &mut [f32],
) -> usize {
    let stride = sums.len() / QUERIES;
    let values = &values[seen.start * stride..seen.end * stride];
    let sums = &mut sums[first * stride..(first + H) * stride];
    let weights = weights[first..][..H].as_flattened();
    let weights = &weights[at + seen.start..];
    for lane in (0..stride).step_by(V * LANES) {
        let mut totals = [[L::splat(0.0); V]; H];
        for (query, totals) in totals.iter_mut().enumerate() {
            for (n, total) in totals.iter_mut().enumerate() {
                let place = query * stride + lane + n * LANES;
                // SAFETY: each of H queries has `stride` sums, a multiple of V · LANES.
                *total = unsafe { L::load(sums.as_ptr().add(place)) };
            }
        }
        for pair in 0..seen.len() {
            let mut vectors = [L::splat(0.0); V];
            for (n, vector) in vectors.iter_mut().enumerate() {
                let place = pair * stride + lane + n * LANES;
                // SAFETY: there are so many pairs, each of `stride` components.
                *vector = unsafe { L::load(values.as_ptr().add(place)) };
            }
            for (query, totals) in totals.iter_mut().enumerate() {
                // SAFETY: the queries' weights are CHUNK / 2 apart, the last pair's at their end or before.
                let weight = unsafe { *weights.get_unchecked(query * (CHUNK / 2) + pair) };
                let weight = L::splat(f32::from_bits(weight));
                for (total, vector) in totals.iter_mut().zip(vectors) {
                    *total = total.add_products(weight, vector);
                }
            }
        }
        for (query, totals) in totals.into_iter().enumerate() {
            for (n, total) in totals.into_iter().enumerate() {
                let place = query * stride + lane + n * LANES;
                // SAFETY: as above.
                unsafe { total.store(sums.as_mut_ptr().add(place)) };
            }
        }
    }
    H
}
