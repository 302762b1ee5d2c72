//! Exact search: the products of a query with every row of a matrix, and the best of them.
//!
//! A score is sixteen sums, number `l` over the columns `l`, `l + 16`, … in order, one fused multiply-add each, and then
//! the tree of [`Lanes::sum`]. So it depends neither on the rows beside it nor on threads or instruction set.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Cpu;
use super::lanes::{LANES, Lanes, vectorised};
use crate::vectors::{Best, Hit, Query, VectorRows};

/// Rows whose sums are in flight together: one row alone waits for its additions.
const ROWS: usize = 4;

impl Cpu {
    /// The `count` best rows for a query, best first, ties to the lower row; `ranges` are the rows that count, in order and without
    /// overlap.
    pub fn scan(
        &self,
        rows: &VectorRows<'_>,
        query: &Query,
        ranges: &[Range<usize>],
        count: usize,
    ) -> Vec<Hit> {
        let total: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let found = Mutex::new(Best::new(count));
        let body = |part: Range<usize>| {
            let mut best = Best::new(count);
            let mut before = 0;
            for range in ranges {
                // The rows of this range that belong to the part.
                let start = part.start.max(before);
                let end = part.end.min(before + range.len());
                if start < end {
                    let rows_here = range.start + start - before..range.start + end - before;
                    scan_range(self.isa, rows, query, rows_here, &mut best);
                }
                before += range.len();
            }
            found.lock().unwrap_or_else(PoisonError::into_inner).extend(best);
        };
        self.run(|| self.split(total, total * rows.dims(), body));
        found.into_inner().unwrap_or_else(PoisonError::into_inner).into_sorted()
    }
}

vectorised! {
    fn scan_range(rows: &VectorRows<'_>, query: &Query, range: Range<usize>, best: &mut Best) = scan_kernel
}

#[inline(always)]
fn scan_kernel<L: Lanes>(
    rows: &VectorRows<'_>,
    query: &Query,
    range: Range<usize>,
    best: &mut Best,
) {
    let mut first = range.start;
    while first + ROWS <= range.end {
        block::<L, ROWS>(rows, query, first, best);
        first += ROWS;
    }
    for row in first..range.end {
        block::<L, 1>(rows, query, row, best);
    }
}

/// `R` rows from `first` on.
#[inline(always)]
fn block<L: Lanes, const R: usize>(
    rows: &VectorRows<'_>,
    query: &Query,
    first: usize,
    best: &mut Best,
) {
    let bytes: [&[u8]; R] = std::array::from_fn(|row| rows.row(first + row));
    for (row, score) in products::<L, R>(&bytes, query).into_iter().enumerate() {
        best.offer(score, first + row);
    }
}

#[inline(always)]
fn products<L: Lanes, const R: usize>(rows: &[&[u8]; R], query: &Query) -> [f32; R] {
    let mut sums = [L::splat(0.0); R];
    // Rows and queries are padded with zeros to whole groups of lanes.
    let width = query.numbers.len();
    for row in rows {
        assert!(row.len() >= 2 * width, "a row is as wide as a query");
    }
    let mut at = 0;
    while at + LANES <= width {
        // SAFETY: the query holds `width` numbers.
        let factor = unsafe { L::load(query.numbers.as_ptr().add(at)) };
        for (sum, row) in sums.iter_mut().zip(rows) {
            // SAFETY: the row holds `width` numbers, as was asserted; rows are 64-byte aligned.
            let value = unsafe { L::load_f16(row.as_ptr().cast::<u16>().add(at)) };
            *sum = factor.fma(value, *sum);
        }
        at += LANES;
    }
    let mut scores = [0.0; R];
    for (score, sum) in scores.iter_mut().zip(&sums) {
        *score = sum.sum();
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::*;
    use crate::vectors::append;

    /// Rows with ties: every third equals the one two before.
    fn matrix(rows: usize, dims: usize) -> Vec<Vec<f32>> {
        let mut state = 7_u64;
        let mut next = || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            ((state >> 40) as f32 / (1 << 24) as f32) - 0.5
        };
        let mut matrix: Vec<Vec<f32>> = Vec::new();
        for row in 0..rows {
            match row % 3 == 2 {
                true => matrix.push(matrix[row - 2].clone()),
                false => matrix.push((0..dims).map(|_| next()).collect()),
            }
        }
        matrix
    }

    fn stored(matrix: &[Vec<f32>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for row in matrix {
            append(row, &mut bytes).unwrap();
        }
        bytes
    }

    #[test]
    fn the_best_rows_are_those_of_a_sort_whatever_is_beside_them() {
        let (dims, count) = (40, 7);
        let matrix = matrix(101, dims);
        let texts: Vec<Vec<f32>> = matrix[20..29].to_vec();
        let bytes = stored(&matrix);
        let rows = VectorRows::new(&bytes, dims).unwrap();
        let queries: Vec<Query> = texts.iter().map(|text| rows.query(text)).collect();
        let ranges = [3..50, 60..101];
        let mut expected = None;
        for isa in Isa::available() {
            for threads in [1, 2] {
                let mut cpu = Cpu::new(threads).unwrap();
                cpu.isa = isa;
                let found = queries.iter().map(|query| cpu.scan(&rows, query, &ranges, count));
                let all: Vec<Vec<Hit>> = found.collect();
                assert_eq!(*expected.get_or_insert_with(|| all.clone()), all, "{isa:?}");
            }
        }
        let Some(expected) = expected else { panic!("no instruction set") };
        for (text, found) in texts.iter().zip(&expected) {
            let exact = |row: usize| -> f64 {
                text.iter().zip(&matrix[row]).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum()
            };
            assert_eq!(found.len(), count);
            for (hit, next) in found.iter().zip(&found[1..]) {
                let is_ordered =
                    hit.score > next.score || (hit.score == next.score && hit.row < next.row);
                assert!(is_ordered && ranges.iter().any(|range| range.contains(&hit.row)));
                assert!((f64::from(hit.score) - exact(hit.row)).abs() < 2e-3);
            }
        }
    }

    #[test]
    fn fewer_rows_than_asked_are_all_there_is() {
        let matrix = matrix(5, 16);
        let bytes = stored(&matrix);
        let rows = VectorRows::new(&bytes, 16).unwrap();
        let query = rows.query(&matrix[0]);
        let cpu = Cpu::new(1).unwrap();
        let three: Vec<Range<usize>> = vec![1..4; 1];
        assert_eq!(cpu.scan(&rows, &query, &three, 50).len(), 3);
        let none: &[Range<usize>] = &[];
        assert!(cpu.scan(&rows, &query, none, 50).is_empty());
    }
}
