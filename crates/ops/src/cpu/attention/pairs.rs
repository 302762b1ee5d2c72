//! Attention over pages of bf16 where the machine multiplies pairs of bf16: queries and weights are rounded to bf16, products
//! are the instruction's, sums are f32.
//!
//! Scores take components in pairs, sums take keys in pairs from a page's first: a row's own order, whatever is beside it. A
//! total adds the rounded weights, so that a mean of equal values is that value.

use std::ops::Range;
use std::ptr::null;

use super::super::lanes::{Avx512, LANES, Lanes, apart};
use super::super::pages::PageHead;
use super::QUERIES;
use super::kernel::{Keys, PagePart, Products, Scored, Sums, attend_kernel, weigh_chunk};
use super::queries::{Queries, transpose_rows};
use super::sums::{ValueRows, add_values, score};
use crate::{CHUNK, PAGE};

/// What a head's length must be a multiple of.
pub const MULTIPLE: usize = 2 * LANES;

/// # Safety
/// The machine has AVX-512 with bf16, and a head's length is a multiple of [`MULTIPLE`].
#[target_feature(enable = "avx512f,avx512bw,avx512bf16,avx2,fma,f16c")]
pub unsafe fn attend(keys: &Keys<'_, u16>, scale: f32, all: &mut [Queries], columns: &mut [f32]) {
    attend_kernel::<u16, Pairs>(keys, scale, all, columns);
}

/// Two bf16 in each lane.
struct Pairs;

apart!(Pairs, "avx512f,avx512bw,avx512bf16,avx2,fma,f16c");

impl Sums for Pairs {
    type Lanes = Avx512;

    #[inline(always)]
    fn add_products(sums: Avx512, a: Avx512, b: Avx512) -> Avx512 {
        sums.add_products(a, b)
    }
}

impl Products<u16> for Pairs {
    /// `[head_dim / 2][16]`, two components a number.
    #[inline(always)]
    fn begin(queries: &mut Queries) {
        let Queries { rows, rounded, transposed, .. } = queries;
        rounded.resize(rows.len() / 2, 0.0);
        let pairs = rounded.as_chunks_mut::<{ LANES / 2 }>().0;
        for (values, pairs) in rows.as_chunks::<LANES>().0.iter().zip(pairs) {
            *pairs = Avx512::from_array(values).to_pairs();
        }
        rounded.resize(LANES * queries.sums.len() / QUERIES / 2, 0.0);
        transpose_rows::<Avx512>(rounded, transposed);
    }

    #[inline(always)]
    fn take_keys(_page: &PageHead<'_, u16>, _count: usize, _readers: usize, _columns: &mut [f32]) {}

    /// A page's keys are `[stride / 2][PAGE]`, two components a number: as f32 pages are of half as many.
    #[inline(always)]
    fn score(queries: &mut Queries, keys: PagePart<'_, u16>, scored: Scored) {
        let PagePart { kept, next, .. } = keys;
        // SAFETY: any bits are an f32.
        let (before, pairs, after) = unsafe { kept.align_to::<f32>() };
        debug_assert!(before.is_empty() && after.is_empty(), "pages begin at pages of memory");
        score::<Pairs, f32>(queries, pairs, next, scored);
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
                *pairs = Avx512::from_array(weights).to_pairs();
                // SAFETY: sixteen bf16 were just written.
                total = total.add(unsafe { Avx512::load_bf16_row(pairs.as_ptr().cast()) });
            }
            queries.weighed[query].1 = total.sum();
        }
    }

    /// `[PAGE / 2][stride]`, a component of two keys a number; the last one stands beside zeros where it has no other.
    #[inline(always)]
    fn take_values(
        page: &PageHead<'_, u16>,
        seen: Range<usize>,
        _readers: usize,
        columns: &mut [f32],
    ) {
        let stride = page.values.len() / PAGE;
        for pair in seen.start / 2..seen.end.div_ceil(2) {
            for lane in (0..stride).step_by(LANES) {
                let from = page.values[2 * pair * stride + lane..].as_ptr();
                let to = columns[pair * stride + lane..].as_mut_ptr();
                let is_whole = 2 * pair + 1 < seen.end;
                // SAFETY: sixteen components of both keys are in the page, and in `columns`.
                unsafe {
                    Avx512::pair(from, is_whole.then_some(from.wrapping_add(stride))).store(to)
                };
            }
        }
    }

    #[inline(always)]
    fn add_values(queries: &mut Queries, values: PagePart<'_, u16>, seen: Range<usize>, at: usize) {
        let Queries { count, pairs, chunk_sums, .. } = queries;
        let seen = seen.start / 2..seen.end.div_ceil(2);
        let rows = ValueRows { values: values.columns, seen, next: null() };
        add_values::<Pairs, f32, { CHUNK / 2 }>(*count, rows, pairs, at / 2, chunk_sums);
    }
}
