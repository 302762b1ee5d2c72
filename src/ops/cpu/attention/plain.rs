//! Scores and weighted sums by products of f32.

use std::marker::PhantomData;
use std::ops::Range;

use super::super::lanes::{LANES, Lanes};
use super::super::pages::{Kept, PageHead};
use super::kernel::{Products, Sums, Values, weigh_chunk};
use super::queries::Queries;
use super::sums::add_values;
use crate::ops::{CHUNK, PAGE};

/// Products of f32, whatever the pages hold.
pub struct Plain<L>(PhantomData<L>);

impl<L: Lanes> Sums for Plain<L> {
    type Lanes = L;

    #[inline(always)]
    fn add_products(sums: L, a: L, b: L) -> L {
        a.fma(b, sums)
    }
}

impl<T: Kept, L: Lanes> Products<T> for Plain<L> {
    #[inline(always)]
    fn begin(queries: &mut Queries) {
        queries.transpose::<L>();
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
    fn weigh(queries: &mut Queries, start: usize) {
        weigh_chunk::<L>(queries, start);
    }

    #[inline(always)]
    fn take_values(
        page: &PageHead<'_, T>,
        seen: Range<usize>,
        readers: usize,
        columns: &mut [f32],
    ) {
        if !widens::<T>(readers) {
            return;
        }
        let stride = page.values.len() / PAGE;
        let seen = seen.start * stride..seen.end * stride;
        let from = page.values[seen.clone()].as_chunks::<LANES>().0;
        let to = columns[seen].as_chunks_mut::<LANES>().0;
        for (to, from) in to.iter_mut().zip(from) {
            // SAFETY: there are sixteen of each.
            unsafe { T::load::<L>(from.as_ptr()).store(to.as_mut_ptr()) };
        }
    }

    #[inline(always)]
    fn add_values(queries: &mut Queries, values: Values<'_, T>, seen: Range<usize>, at: usize) {
        let Queries { count, scores, chunk_sums, .. } = queries;
        let Values { kept, columns, readers } = values;
        if widens::<T>(readers) {
            add_values::<Plain<L>, f32, CHUNK>(*count, columns, seen, scores, at, chunk_sums);
        } else {
            add_values::<Plain<L>, T, CHUNK>(*count, kept, seen, scores, at, chunk_sums);
        }
    }
}

/// Whether values are widened once for all who read them, instead of by each.
#[inline(always)]
fn widens<T: Kept>(readers: usize) -> bool {
    size_of::<T>() < size_of::<f32>() && readers > 1
}
