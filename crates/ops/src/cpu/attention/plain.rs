//! Scores and weighted sums by products of f32.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::null;

use super::super::kept::Kept;
use super::super::lanes::{Apart, Counted, LANES, Lanes};
use super::super::pages::PageHead;
use super::kernel::{PagePart, Products, Scored, Sums, weigh_chunk};
use super::queries::Queries;
use super::sums::{ValueRows, add_values, score};
use crate::{CHUNK, PAGE};

/// Products of f32, whatever the pages hold.
pub struct Plain<L>(PhantomData<L>);

impl<L: Lanes> Apart for Plain<L> {
    #[inline(always)]
    fn apart<const COUNT: usize>(body: impl Counted) -> usize {
        L::apart::<COUNT>(body)
    }
}

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

    #[inline(always)]
    fn take_keys(page: &PageHead<'_, T>, count: usize, readers: usize, columns: &mut [f32]) {
        if !widens::<T>(readers) {
            return;
        }
        let rows = page
            .keys
            .chunks_exact(2 * PAGE)
            .zip(columns.as_chunks_mut::<PAGE>().0.as_chunks_mut::<2>().0);
        for (from, [first, second]) in rows {
            for key in (0..PAGE.min(count)).step_by(LANES) {
                // SAFETY: a page holds a multiple of sixteen keys, and so do rows of columns.
                unsafe {
                    let [a, b] = T::load_pair::<L>(from[T::TOGETHER * key..].as_ptr(), PAGE);
                    a.store(first[key..][..LANES].as_mut_ptr());
                    b.store(second[key..][..LANES].as_mut_ptr());
                }
            }
        }
    }

    #[inline(always)]
    fn score(queries: &mut Queries, keys: PagePart<'_, T>, scored: Scored) {
        let PagePart { kept, columns, readers, next } = keys;
        if widens::<T>(readers) {
            score::<Plain<L>, f32>(queries, columns, null(), scored);
        } else {
            score::<Plain<L>, T>(queries, kept, next, scored);
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
    fn add_values(queries: &mut Queries, values: PagePart<'_, T>, seen: Range<usize>, at: usize) {
        let Queries { count, scores, chunk_sums, .. } = queries;
        let PagePart { kept, columns, readers, next } = values;
        if widens::<T>(readers) {
            let rows = ValueRows { values: columns, seen, next: null() };
            add_values::<Plain<L>, f32, CHUNK>(*count, rows, scores, at, chunk_sums);
        } else {
            let rows = ValueRows { values: kept, seen, next };
            add_values::<Plain<L>, T, CHUNK>(*count, rows, scores, at, chunk_sums);
        }
    }
}

/// Whether keys and values are widened once for all who read them, instead of by each.
#[inline(always)]
fn widens<T: Kept>(readers: usize) -> bool {
    size_of::<T>() < size_of::<f32>() && readers > 1
}
