//! Exact search: the products of queries with every row of a matrix, and the best of them.
//!
//! A score is sixteen sums, number `l` over the columns `l`, `l + 16`, … in order, one fused multiply-add each, and then
//! the tree of [`Lanes::sum`]. So it depends neither on the rows and queries beside it nor on threads or instruction set.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::Cpu;
use super::lanes::{LANES, Lanes, vectorised};
use crate::vectors::{Best, Hit, Query, VectorRows};

/// Rows whose sums are in flight together: one row alone waits for its additions.
const ROWS: usize = 4;
/// Queries that share a pass over a row.
const QUERIES: usize = 4;

impl Cpu {
    /// The `count` best rows for each query, best first, ties to the lower row; `ranges` are the rows that count, in
    /// order and without overlap. One pass over the rows serves all queries.
    pub fn scan(
        &self,
        rows: &VectorRows<'_>,
        queries: &[Query],
        ranges: &[Range<usize>],
        count: usize,
    ) -> Vec<Vec<Hit>> {
        let total: usize = ranges.iter().map(ExactSizeIterator::len).sum();
        let found: Mutex<Vec<Best>> =
            Mutex::new(queries.iter().map(|_| Best::new(count)).collect());
        let body = |part: Range<usize>| {
            let mut best: Vec<Best> = queries.iter().map(|_| Best::new(count)).collect();
            let mut before = 0;
            for range in ranges {
                // The rows of this range that belong to the part.
                let start = part.start.max(before);
                let end = part.end.min(before + range.len());
                if start < end {
                    let rows_here = range.start + start - before..range.start + end - before;
                    scan_range(self.isa, rows, queries, rows_here, &mut best);
                }
                before += range.len();
            }
            let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
            for (all, part) in found.iter_mut().zip(best) {
                all.extend(part);
            }
        };
        let work = total * rows.dims() * queries.len();
        self.run(|| self.split(total, work, body));
        let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.into_iter().map(Best::into_sorted).collect()
    }
}

vectorised! {
    fn scan_range(rows: &VectorRows<'_>, queries: &[Query], range: Range<usize>, best: &mut [Best]) = scan_kernel
}

#[inline(always)]
fn scan_kernel<L: Lanes>(
    rows: &VectorRows<'_>,
    queries: &[Query],
    range: Range<usize>,
    best: &mut [Best],
) {
    let mut first = range.start;
    while first < range.end {
        let count = ROWS.min(range.end - first);
        for (queries, best) in queries.chunks(QUERIES).zip(best.chunks_mut(QUERIES)) {
            if count == ROWS && queries.len() == QUERIES {
                block::<L, ROWS, QUERIES>(rows, queries, first, best);
                continue;
            }
            for (query, best) in queries.iter().zip(best) {
                let (query, best) = (std::slice::from_ref(query), std::slice::from_mut(best));
                if count == ROWS {
                    block::<L, ROWS, 1>(rows, query, first, best);
                } else {
                    for row in first..first + count {
                        block::<L, 1, 1>(rows, query, row, best);
                    }
                }
            }
        }
        first += count;
    }
}

/// `R` rows from `first` on with `Q` queries.
#[inline(always)]
fn block<L: Lanes, const R: usize, const Q: usize>(
    rows: &VectorRows<'_>,
    queries: &[Query],
    first: usize,
    best: &mut [Best],
) {
    let bytes: [&[u8]; R] = std::array::from_fn(|row| rows.row(first + row));
    let scores = products::<L, R, Q>(&bytes, queries);
    for (best, scores) in best.iter_mut().zip(&scores) {
        for (row, score) in scores.iter().enumerate() {
            best.offer(*score, first + row);
        }
    }
}

#[inline(always)]
fn products<L: Lanes, const R: usize, const Q: usize>(
    rows: &[&[u8]; R],
    queries: &[Query],
) -> [[f32; R]; Q] {
    let mut sums = [[L::splat(0.0); R]; Q];
    // Rows and queries are padded with zeros to whole groups of lanes.
    let width = queries.first().map_or(0, |query| query.numbers.len());
    for row in rows {
        assert!(row.len() >= 2 * width, "a row is as wide as a query");
    }
    for query in queries {
        assert!(query.numbers.len() == width, "queries are equally wide");
    }
    let mut at = 0;
    while at + LANES <= width {
        let mut values = [L::splat(0.0); R];
        for (value, row) in values.iter_mut().zip(rows) {
            // SAFETY: the row holds `width` numbers, as was asserted; rows are 64-byte aligned.
            *value = unsafe { L::load_f16(row.as_ptr().cast::<u16>().add(at)) };
        }
        for (sums, query) in sums.iter_mut().zip(queries) {
            // SAFETY: the query holds `width` numbers, as was asserted.
            let factor = unsafe { L::load(query.numbers.as_ptr().add(at)) };
            for (sum, value) in sums.iter_mut().zip(&values) {
                *sum = factor.fma(*value, *sum);
            }
        }
        at += LANES;
    }
    let mut scores = [[0.0; R]; Q];
    for (scores, sums) in scores.iter_mut().zip(&sums) {
        for (score, sum) in scores.iter_mut().zip(sums) {
            *score = sum.sum();
        }
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
                let all = cpu.scan(&rows, &queries, &ranges, count);
                for (query, together) in queries.iter().zip(&all) {
                    let alone = cpu.scan(&rows, std::slice::from_ref(query), &ranges, count);
                    assert_eq!(alone[0], *together, "{isa:?}");
                }
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
        assert_eq!(cpu.scan(&rows, &[query], &three, 50)[0].len(), 3);
        let none: &[Range<usize>] = &[];
        assert!(cpu.scan(&rows, &[rows.query(&matrix[1])], none, 50)[0].is_empty());
        assert!(cpu.scan(&rows, &[], &three, 50).is_empty());
    }
}
