//! Whole texts, one after another without padding, many of them a step.

use super::tokens::Sequence;
use crate::ops::{PAGE, Rows};

/// Takes the states of one text, `[tokens][width]`, and leaves what is wanted of them.
pub(super) type Take<'a> = dyn Fn(&[f32]) -> Vec<f64> + Sync + 'a;

/// Runs of texts of at most `most` tokens together; a longer text is alone.
pub(super) fn steps(texts: &[Sequence], most: usize) -> Vec<&[Sequence]> {
    let (mut steps, mut first, mut rows) = (Vec::new(), 0, 0);
    for (index, text) in texts.iter().enumerate() {
        rows += text.tokens.len();
        if rows > most && index > first {
            steps.push(&texts[first..index]);
            (first, rows) = (index, text.tokens.len());
        }
    }
    steps.extend(Some(&texts[first..]).filter(|last| !last.is_empty()));
    steps
}

/// Rows and pages.
#[derive(Clone, Copy)]
pub(super) struct Size {
    pub(super) rows: usize,
    pub(super) pages: usize,
}

impl Size {
    /// What any of these steps has room in.
    pub(super) fn of(steps: &[&[Sequence]]) -> Size {
        let most = |count: fn(usize) -> usize| {
            let of = |step: &&[Sequence]| step.iter().map(|text| count(text.tokens.len())).sum();
            steps.iter().map(of).max().unwrap_or(0)
        };
        Size { rows: most(|tokens| tokens), pages: most(|tokens| tokens.div_ceil(PAGE)) }
    }

    pub(super) fn holds(self, other: Size) -> bool {
        self.rows >= other.rows && self.pages >= other.pages
    }
}

/// The rows of a step's texts, one after another.
#[derive(Default)]
pub(super) struct Packed {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    sequences: Vec<u32>,
    segments: Vec<u32>,
    tables: Vec<Vec<u32>>,
}

impl Packed {
    pub(super) fn new(texts: &[Sequence]) -> Packed {
        let mut packed = Packed::default();
        let mut next_page = 0;
        for (index, text) in texts.iter().enumerate() {
            let length = text.tokens.len();
            packed.tokens.extend_from_slice(&text.tokens);
            packed.segments.extend_from_slice(&text.segments);
            packed.positions.extend(0..length as u32);
            packed.sequences.extend(std::iter::repeat_n(index as u32, length));
            let pages = length.div_ceil(PAGE) as u32;
            packed.tables.push((next_page..next_page + pages).collect());
            next_page += pages;
        }
        packed
    }

    pub(super) fn with_rows<T>(&self, run: impl FnOnce(Rows<'_>) -> T) -> T {
        let tables: Vec<&[u32]> = self.tables.iter().map(Vec::as_slice).collect();
        run(Rows {
            tokens: &self.tokens,
            positions: &self.positions,
            sequences: &self.sequences,
            segments: &self.segments,
            tables: &tables,
            states: &[],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_filled_and_a_long_text_is_alone() {
        let text =
            |tokens| Sequence { tokens: vec![1; tokens], segments: vec![0; tokens], left_out: 0 };
        let counts = |lengths: &[usize]| {
            let texts: Vec<Sequence> = lengths.iter().copied().map(text).collect();
            steps(&texts, 10).iter().map(|step| step.len()).collect::<Vec<_>>()
        };
        assert_eq!(counts(&[]), [0; 0]);
        assert_eq!(counts(&[4, 6, 1, 20, 3, 7]), [2, 1, 1, 2]);
        assert_eq!(counts(&[20, 20]), [1, 1]);
    }
}
