//! Matching blocks of two sequences, as CPython's `difflib.SequenceMatcher` finds them (Ratcliff and Obershelp, Dr. Dobb's
//! Journal, July 1988): the longest common run, then the longest on each side of it, and so on.

use std::collections::{BTreeMap, HashMap};
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
fn ratio(matching: usize, length: usize) -> f64 {
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
        let mut blocks = Vec::new();
        let mut parts = vec![(0..a.len(), 0..self.b.len())];
        while let Some((of_a, of_b)) = parts.pop() {
            if of_a.is_empty() || of_b.is_empty() {
                continue;
            }
            if let Some(block) = self.longest(a, &of_a, &of_b) {
                parts.push((of_a.start..block.a, of_b.start..block.b));
                parts.push((block.a + block.size..of_a.end, block.b + block.size..of_b.end));
                blocks.push(block);
            }
        }
        blocks.sort_unstable_by_key(|block| block.a);
        blocks.dedup_by(|next, block| {
            let adjacent = block.a + block.size == next.a && block.b + block.size == next.b;
            block.size += if adjacent { next.size } else { 0 };
            adjacent
        });
        blocks
    }

    /// The longest common run of the two ranges: of several the first in `a`, then the first in `b`. Popular items start
    /// none, but lengthen one that they adjoin.
    fn longest(&self, a: &[T], of_a: &Range<usize>, of_b: &Range<usize>) -> Option<Block> {
        let mut best = Block { a: of_a.start, b: of_b.start, size: 0 };
        // By its end in `b`, how long each run is that ends with the item of `a` before this one.
        let mut earlier: BTreeMap<usize, usize> = BTreeMap::new();
        for (i, item) in a.iter().enumerate().take(of_a.end).skip(of_a.start) {
            let places = self.places.get(item).into_iter().flatten();
            let run = |&j: &usize| {
                let before = j.checked_sub(1).and_then(|j| earlier.get(&j));
                (j, 1 + before.copied().unwrap_or(0))
            };
            let runs: BTreeMap<_, _> = places.filter(|j| of_b.contains(j)).map(run).collect();
            for (j, size) in &runs {
                if *size > best.size {
                    best = Block { a: i + 1 - size, b: j + 1 - size, size: *size };
                }
            }
            earlier = runs;
        }
        let adjoin = |i: usize, j: usize| a[i] == self.b[j];
        while best.a > of_a.start && best.b > of_b.start && adjoin(best.a - 1, best.b - 1) {
            (best.a, best.b, best.size) = (best.a - 1, best.b - 1, best.size + 1);
        }
        while best.a + best.size < of_a.end
            && best.b + best.size < of_b.end
            && adjoin(best.a + best.size, best.b + best.size)
        {
            best.size += 1;
        }
        (best.size > 0).then_some(best)
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
