//! Matching blocks of two sequences, as CPython's `difflib.SequenceMatcher` finds them (Ratcliff and Obershelp, Dr. Dobb's
//! Journal, July 1988): the longest common run, then the longest on each side of it, and so on.

use std::collections::HashMap;
use std::hash::Hash;
use std::ops::Range;

/// From this length of the second sequence on, items that are popular there start no run.
const LONG: usize = 200;

/// The second sequence, prepared: many first ones are compared with it.
pub struct SequenceMatcher<'b, T> {
    b: &'b [T],
    /// Where in `b` each item stands, ascending; popular items are left out.
    places: HashMap<&'b T, Vec<usize>>,
}

/// `a[a..a + size]` equals `b[b..b + size]`; `size` is not 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub a: usize,
    pub b: usize,
    pub size: usize,
}

/// A range of `a` and what comes of it in `b`: the same, or another; either may be empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opcode {
    pub is_equal: bool,
    pub a: Range<usize>,
    pub b: Range<usize>,
}

/// The share of both sequences that lies in matching blocks: 2M / (|a| + |b|), and 1 for two empty ones.
pub(super) fn ratio(matching: usize, length: usize) -> f64 {
    match length {
        0 => 1.0,
        _ => 2.0 * matching as f64 / length as f64,
    }
}

impl<'b, T: Eq + Hash> SequenceMatcher<'b, T> {
    pub fn new(b: &'b [T]) -> SequenceMatcher<'b, T> {
        let mut places: HashMap<&T, Vec<usize>> = HashMap::new();
        for (place, item) in b.iter().enumerate() {
            places.entry(item).or_default().push(place);
        }
        if b.len() >= LONG {
            // CPython's "autojunk".
            places.retain(|_, places| places.len() <= b.len() / 100 + 1);
        }
        SequenceMatcher { b, places }
    }

    /// 0 to 1; in general not the same with the sequences exchanged.
    pub fn ratio(&self, a: &[T]) -> f64 {
        let blocks = self.matching_blocks(a);
        let matching = blocks.iter().map(|block| block.size).sum();
        ratio(matching, a.len() + self.b.len())
    }

    /// Ascending in both sequences, no two adjacent in both. Without the block of size 0 that CPython puts at the end.
    pub fn matching_blocks(&self, a: &[T]) -> Vec<Block> {
        let mut search = Search::new(self, a);
        let mut blocks = Vec::new();
        let mut parts = vec![(0..a.len(), 0..self.b.len())];
        while let Some((of_a, of_b)) = parts.pop() {
            let Some(block) = search.longest(&of_a, &of_b) else {
                continue;
            };
            let (end_a, end_b) = (block.a + block.size, block.b + block.size);
            for part in
                [(of_a.start..block.a, of_b.start..block.b), (end_a..of_a.end, end_b..of_b.end)]
            {
                if !part.0.is_empty() && !part.1.is_empty() {
                    parts.push(part);
                }
            }
            blocks.push(block);
        }
        blocks.sort_unstable_by_key(|block| block.a);
        blocks.dedup_by(|next, block| {
            let adjacent = block.a + block.size == next.a && block.b + block.size == next.b;
            block.size += if adjacent { next.size } else { 0 };
            adjacent
        });
        blocks
    }

    /// How `a` becomes `b`, in order; the ranges cover both without gaps.
    pub fn opcodes(&self, a: &[T]) -> Vec<Opcode> {
        let mut opcodes = Vec::new();
        let (mut done_a, mut done_b) = (0, 0);
        let end = Block { a: a.len(), b: self.b.len(), size: 0 };
        for block in self.matching_blocks(a).into_iter().chain([end]) {
            let (end_a, end_b) = (block.a + block.size, block.b + block.size);
            opcodes.push(Opcode { is_equal: false, a: done_a..block.a, b: done_b..block.b });
            opcodes.push(Opcode { is_equal: true, a: block.a..end_a, b: block.b..end_b });
            (done_a, done_b) = (end_a, end_b);
        }
        opcodes.retain(|opcode| !opcode.a.is_empty() || !opcode.b.is_empty());
        opcodes
    }
}

/// One first sequence, and the rows of the search over it.
struct Search<'s, T> {
    a: &'s [T],
    b: &'s [T],
    /// For each item of `a`, where it stands in `b`.
    places: Vec<&'s [usize]>,
    /// `[|b| + 1]`: at *j* the length of the run that ends with the item of `a` before this one and the item *j* - 1 of `b`.
    /// All zeros between searches.
    earlier: Vec<usize>,
    /// `[|b| + 1]`: at *j* the length of the run that ends with this item of `a` and the item *j* - 1 of `b`. All zeros
    /// between searches.
    row: Vec<usize>,
}

impl<'s, T: Eq + Hash> Search<'s, T> {
    fn new(matcher: &'s SequenceMatcher<'_, T>, a: &'s [T]) -> Search<'s, T> {
        let places = |item| matcher.places.get(item).map_or(&[][..], Vec::as_slice);
        Search {
            a,
            b: matcher.b,
            places: a.iter().map(places).collect(),
            earlier: vec![0; matcher.b.len() + 1],
            row: vec![0; matcher.b.len() + 1],
        }
    }

    /// The longest common run of the two ranges: of several the first in `a`, then the first in `b`. Popular items start
    /// none, but lengthen one that they adjoin.
    fn longest(&mut self, of_a: &Range<usize>, of_b: &Range<usize>) -> Option<Block> {
        let mut best = Block { a: of_a.start, b: of_b.start, size: 0 };
        let mut written: &[usize] = &[];
        for i in of_a.clone() {
            let places = inside(self.places[i], of_b);
            for &j in places {
                let size = self.earlier[j] + 1;
                self.row[j + 1] = size;
                if size > best.size {
                    (best.a, best.b, best.size) = (i + 1 - size, j + 1 - size, size);
                }
            }
            self.forget(written);
            std::mem::swap(&mut self.earlier, &mut self.row);
            written = places;
        }
        self.forget(written);
        while best.a > of_a.start && best.b > of_b.start && self.equal(best.a - 1, best.b - 1) {
            (best.a, best.b, best.size) = (best.a - 1, best.b - 1, best.size + 1);
        }
        while best.a + best.size < of_a.end
            && best.b + best.size < of_b.end
            && self.equal(best.a + best.size, best.b + best.size)
        {
            best.size += 1;
        }
        (best.size > 0).then_some(best)
    }

    fn forget(&mut self, written: &[usize]) {
        for &j in written {
            self.earlier[j + 1] = 0;
        }
    }

    fn equal(&self, i: usize, j: usize) -> bool {
        self.a[i] == self.b[j]
    }
}

/// The ascending `places` that lie in `range`.
fn inside<'s>(places: &'s [usize], range: &Range<usize>) -> &'s [usize] {
    let start = places.partition_point(|&place| place < range.start);
    let end = places.partition_point(|&place| place < range.end);
    &places[start..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn characters(text: &str) -> Vec<char> {
        text.chars().collect()
    }

    #[test]
    fn the_first_of_equally_long_runs_is_taken() {
        let b = characters("acab");
        let blocks = SequenceMatcher::new(&b).matching_blocks(&characters("ab"));
        let expected = Block { a: 0, b: 2, size: 2 };
        assert_eq!(blocks, [expected]);
    }

    #[test]
    fn opcodes_tell_every_kind_of_edit() {
        let b = characters("abycdf");
        let opcodes = SequenceMatcher::new(&b).opcodes(&characters("qabxcd"));
        let edits: Vec<(bool, Range<usize>, Range<usize>)> =
            opcodes.into_iter().map(|opcode| (opcode.is_equal, opcode.a, opcode.b)).collect();
        let expected = [
            (false, 0..1, 0..0),
            (true, 1..3, 0..2),
            (false, 3..4, 2..3),
            (true, 4..6, 3..5),
            (false, 6..6, 5..6),
        ];
        assert_eq!(edits, expected);
    }

    #[test]
    fn popular_items_of_a_long_sequence_start_no_run() {
        let long: Vec<char> = std::iter::repeat_n('x', LONG).collect();
        assert_eq!(SequenceMatcher::new(&long).ratio(&characters("zxx")), 0.0);
        let short = &long[1..];
        let ratio = SequenceMatcher::new(short).ratio(&characters("zxx"));
        assert_eq!(ratio, 4.0 / 202.0);
        // They lengthen a run that something else started.
        let mut marked = long.clone();
        marked[100] = 'y';
        let ratio = SequenceMatcher::new(&marked).ratio(&characters("xxyx"));
        assert_eq!(ratio, 8.0 / 204.0);
        // As they do where both sequences begin alike.
        let ratio = SequenceMatcher::new(&long).ratio(&characters("xxz"));
        assert_eq!(ratio, 4.0 / 203.0);
    }

    #[test]
    fn empty_sequences_are_alike() {
        assert_eq!(SequenceMatcher::<char>::new(&[]).ratio(&[]), 1.0);
        assert_eq!(SequenceMatcher::new(&['x']).ratio(&[]), 0.0);
        assert!(SequenceMatcher::<char>::new(&[]).opcodes(&[]).is_empty());
    }
}
