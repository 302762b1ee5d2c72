//! The arithmetic of attention: scores, weights, and weighted sums, chunk by chunk.

use std::ops::Range;
use std::ptr::null;

use super::super::Isa;
use super::super::kept::Kept;
use super::super::lanes::{Apart, LANES, Lanes, exp, vectorised};
use super::super::pages::{PageHead, PagesOf};
use super::QUERIES;
use super::plain::Plain;
use super::queries::Queries;
use crate::{CHUNK, PAGE};

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
    /// Leaves the attention of each of `all` in its sums. `columns` is room for a page's keys or values, `[stride][PAGE]`.
    fn attend(
        isa: Isa,
        keys: &Keys<'_, Self>,
        scale: f32,
        all: &mut [Queries],
        columns: &mut [f32],
    ) {
        attend_plain(isa, keys, scale, all, columns);
    }
}

impl Attended for f32 {}

impl Attended for u16 {
    fn attend(
        isa: Isa,
        keys: &Keys<'_, u16>,
        scale: f32,
        all: &mut [Queries],
        columns: &mut [f32],
    ) {
        #[cfg(target_arch = "x86_64")]
        if isa.pairs_keys() && keys.pages.head_dim.is_multiple_of(super::pairs::MULTIPLE) {
            // SAFETY: the machine has the instructions.
            return unsafe { super::pairs::attend(keys, scale, all, columns) };
        }
        attend_plain(isa, keys, scale, all, columns);
    }
}

vectorised! {
    fn attend_plain<T: Kept>(keys: &Keys<'_, T>, scale: f32, all: &mut [Queries], columns: &mut [f32]) = attend_plainly<T>
}

#[inline(always)]
fn attend_plainly<L: Lanes, T: Kept>(
    keys: &Keys<'_, T>,
    scale: f32,
    all: &mut [Queries],
    columns: &mut [f32],
) {
    attend_kernel::<T, Plain<L>>(keys, scale, all, columns);
}

/// Sums in lanes, and what a step adds to them.
pub trait Sums: Apart {
    type Lanes: Lanes;

    /// `sums` plus the products of `a` and `b`.
    fn add_products(sums: Self::Lanes, a: Self::Lanes, b: Self::Lanes) -> Self::Lanes;
}

/// What scores and weighted sums are made of.
pub trait Products<T: Kept>: Sums {
    /// The queries, once all are there, as [`super::sums::score`] reads them.
    fn begin(queries: &mut Queries);
    /// A page's first `count` keys, or more, to `columns`, where [`Products::score`] will read them there. Their readers are so many.
    fn take_keys(page: &PageHead<'_, T>, count: usize, readers: usize, columns: &mut [f32]);
    /// The queries' scores of a page's keys.
    fn score(queries: &mut Queries, keys: PagePart<'_, T>, scored: Scored);
    /// Turns the chunk's scores to weights, and begins its sums: each query's maximum and total so far.
    fn weigh(queries: &mut Queries, start: usize);
    /// The values of the page's keys `seen` to `columns`, where [`Products::add_values`] will read them there. Their readers
    /// are so many.
    fn take_values(page: &PageHead<'_, T>, seen: Range<usize>, readers: usize, columns: &mut [f32]);
    /// `chunk_sums[query] += Σ weight · value` over `seen` of a page's keys, in order, of which `at` is the first one's place
    /// in the chunk.
    fn add_values(queries: &mut Queries, values: PagePart<'_, T>, seen: Range<usize>, at: usize);
}

/// A page's keys or values.
#[derive(Clone, Copy)]
pub struct PagePart<'a, T> {
    pub kept: &'a [T],
    /// As [`Products::take_keys`] or [`Products::take_values`] left them.
    pub columns: &'a [f32],
    pub readers: usize,
    /// What is read after it, as long as it is: prefetched meanwhile, since the processor does not look beyond a page. Null: nothing
    /// is prefetched, as where many read a page.
    pub next: *const u8,
}

/// The keys of a page before `end` are scored: times `scale`, the first one at `at` of the chunk's scores.
#[derive(Clone, Copy)]
pub struct Scored {
    pub end: usize,
    pub scale: f32,
    pub at: usize,
}

#[inline(always)]
pub fn attend_kernel<T: Kept, P: Products<T>>(
    keys: &Keys<'_, T>,
    scale: f32,
    all: &mut [Queries],
    columns: &mut [f32],
) {
    let (mut first, mut end) = (usize::MAX, 0);
    for queries in all.iter_mut() {
        P::begin(queries);
        first = first.min(queries.all_seen.start);
        end = end.max(queries.all_seen.end);
    }
    let readers = all.len();
    for start in (first / CHUNK * CHUNK..end).step_by(CHUNK) {
        let seen = first.max(start)..end.min(start + CHUNK);
        let pages = seen.start / PAGE..seen.end.div_ceil(PAGE);
        for page in pages.clone() {
            let page_start = page * PAGE;
            let kept = keys.page(page).keys;
            let next = match page + 1 < pages.end {
                _ if readers > 1 => null(),
                true => keys.page(page + 1).keys.as_ptr(),
                false => keys.page(pages.start).values.as_ptr(),
            };
            P::take_keys(&keys.page(page), seen.end - page_start, readers, columns);
            let part = PagePart { kept, columns, readers, next: next.cast() };
            for queries in all.iter_mut() {
                let seen = queries.seen_of_page(page_start);
                if !seen.is_empty() {
                    P::score(
                        queries,
                        part,
                        Scored { end: seen.end, scale, at: page_start - start },
                    );
                }
            }
        }
        for queries in all.iter_mut() {
            P::weigh(queries, start);
        }
        for page in pages.clone() {
            let page_start = page * PAGE;
            let of_page = seen.start.max(page_start)..seen.end.min(page_start + PAGE);
            let of_page = of_page.start - page_start..of_page.end - page_start;
            let next = match page + 1 < pages.end {
                _ if readers > 1 => null(),
                true => keys.page(page + 1).values.as_ptr(),
                false if pages.end * PAGE < end => keys.page(pages.end).keys.as_ptr(),
                false => null(),
            };
            let page = keys.page(page);
            P::take_values(&page, of_page, readers, columns);
            let part = PagePart { kept: page.values, columns, readers, next: next.cast() };
            for queries in all.iter_mut() {
                let seen = queries.seen_of_page(page_start);
                if !seen.is_empty() {
                    P::add_values(queries, part, seen, page_start - start);
                }
            }
        }
        for queries in all.iter_mut() {
            merge_chunk::<P::Lanes>(queries);
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

/// Turns the chunk's scores to weights, and begins its sums: each query's maximum and total so far.
#[inline(always)]
pub fn weigh_chunk<L: Lanes>(queries: &mut Queries, start: usize) {
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
