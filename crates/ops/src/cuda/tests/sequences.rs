//! Rows of several sequences at once, on pages in no order.

use std::ops::Range;

use crate::{PAGE, Rows, StepLimits};

pub struct Sequences {
    /// Of each row, in the order that rows are computed in.
    positions: Vec<u32>,
    sequences: Vec<u32>,
    tables: Vec<Vec<u32>>,
}

impl Sequences {
    /// Of so many positions each: sequence after sequence without the last `tail` positions, which then come in turns.
    pub fn new(lengths: &[usize], tail: usize) -> Sequences {
        let prompts = lengths.iter().enumerate().flat_map(|(sequence, length)| {
            let prompt = 0..length.saturating_sub(tail);
            prompt.map(move |position| (sequence, position))
        });
        let turns = (0..tail).flat_map(|turn| {
            let sequences = lengths.iter().enumerate();
            sequences.filter_map(move |(sequence, length)| {
                let last = tail.min(*length);
                (turn < last).then(|| (sequence, length - last + turn))
            })
        });
        let (sequences, positions) = prompts
            .chain(turns)
            .map(|(sequence, position)| (sequence as u32, position as u32))
            .unzip();
        let counts = lengths.iter().map(|length| length.div_ceil(PAGE));
        let pages = counts.clone().sum::<usize>() as u32;
        // A step that has no factor in common with the count of pages meets each of them.
        let step = (3..).find(|step| gcd(*step, pages) == 1).unwrap_or(1);
        let mut shuffled = (0..pages).map(|index| index * step % pages);
        Sequences {
            positions,
            sequences,
            tables: counts.map(|count| shuffled.by_ref().take(count).collect()).collect(),
        }
    }

    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.positions.len()
    }

    /// How many pages they take.
    pub fn pages(&self) -> usize {
        self.tables.iter().map(Vec::len).sum()
    }

    /// The most that a step of them holds; each sequence gives a row of logits.
    pub fn limits(&self) -> StepLimits {
        let longest = self.tables.iter().map(Vec::len).max().unwrap_or(0);
        StepLimits { rows: self.rows(), logit_rows: self.tables.len(), positions: longest * PAGE }
    }

    pub fn tables(&self) -> Vec<&[u32]> {
        self.tables.iter().map(Vec::as_slice).collect()
    }

    /// A step of some rows; `tables` are those of [`Sequences::tables`]. No token matters.
    pub fn step<'a>(&'a self, rows: Range<usize>, tables: &'a [&'a [u32]]) -> Rows<'a> {
        Rows {
            tokens: &self.positions[rows.clone()],
            positions: &self.positions[rows.clone()],
            sequences: &self.sequences[rows],
            segments: &[],
            tables,
            states: &[],
        }
    }

    /// Of each row: the page of its position, and where on it.
    pub fn slots(&self) -> impl Iterator<Item = (usize, usize)> {
        let rows = self.sequences.iter().zip(&self.positions);
        rows.map(|(sequence, position)| {
            let position = *position as usize;
            let page = self.tables[*sequence as usize][position / PAGE];
            (page as usize, position % PAGE)
        })
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}
