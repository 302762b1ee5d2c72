//! Whole texts, one after another without padding, many of them a step.

use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use super::EncoderError;
use super::tokens::Sequence;
use crate::ops::{Machine, PAGE, Rows};

/// Takes the states of one text, `[tokens][width]`, and leaves what is wanted of them.
pub(super) type Take<'a> = dyn Fn(&[f32]) -> Vec<f64> + Sync + 'a;

/// The steps of a list of texts.
pub(super) struct Steps(Vec<Step>);

/// Texts that share a step, and the rows and pages that they take.
#[derive(Clone)]
pub(super) struct Step {
    texts: Range<usize>,
    pub(super) rows: usize,
    pub(super) pages: usize,
}

impl Steps {
    /// What `take` makes of each text's states, which `run` gives of a step's texts one after another.
    pub(super) fn run(
        &self,
        texts: &[Sequence],
        take: &Take<'_>,
        mut run: impl FnMut(&Packed) -> Result<Vec<f32>, EncoderError>,
    ) -> Result<Vec<Vec<f64>>, EncoderError> {
        let mut taken = Vec::with_capacity(texts.len());
        for step in &self.0 {
            let texts = &texts[step.texts.clone()];
            let states = run(&Packed::new(texts))?;
            let width = states.len() / step.rows;
            let mut rest = states.as_slice();
            for text in texts {
                let (own, after) = rest.split_at(text.tokens.len() * width);
                taken.push(take(own));
                rest = after;
            }
        }
        match taken.iter().position(|numbers| !numbers.iter().all(|number| number.is_finite())) {
            None => Ok(taken),
            Some(text) => Err(EncoderError::NotFinite { place: text + 1, of: texts.len() }),
        }
    }

    /// The most rows and the most pages of any; `None`: there are no texts.
    pub(super) fn largest(&self) -> Option<Step> {
        let mut largest = self.0.first()?.clone();
        for step in &self.0 {
            largest.rows = largest.rows.max(step.rows);
            largest.pages = largest.pages.max(step.pages);
        }
        Some(largest)
    }
}

/// What steps are computed in, kept from one call to the next: each of many small calls would make it anew. Calls at one time
/// make their own.
pub(super) struct Spare<T>(Mutex<Option<Room<T>>>);

/// Something with room for steps of so many rows and pages.
pub(super) struct Room<T> {
    rows: usize,
    pages: usize,
    pub(super) one: T,
}

impl<T> Default for Spare<T> {
    fn default() -> Spare<T> {
        Spare(Mutex::new(None))
    }
}

impl<T> Spare<T> {
    /// What was kept, where `step` has room in it, or else what `make` makes, of the larger of both sizes.
    pub(super) fn take(
        &self,
        step: Step,
        make: impl FnOnce(&Step) -> Result<T, EncoderError>,
    ) -> Result<Room<T>, EncoderError> {
        let kept = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(kept) = kept else {
            return Ok(Room { rows: step.rows, pages: step.pages, one: make(&step)? });
        };
        if kept.rows >= step.rows && kept.pages >= step.pages {
            return Ok(kept);
        }
        let (rows, pages) = (kept.rows.max(step.rows), kept.pages.max(step.pages));
        // Both together may be more than there is.
        drop(kept);
        let one = make(&Step { rows, pages, ..step })?;
        Ok(Room { rows, pages, one })
    }

    pub(super) fn keep(&self, room: Room<T>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(room);
    }
}

/// Runs of texts of as many tokens as fill `machine`; a longer text is alone.
pub(super) fn steps(texts: &[Sequence], machine: Machine) -> Steps {
    let most = machine.prefill_rows();
    let mut steps: Vec<Step> = Vec::new();
    for (index, text) in texts.iter().enumerate() {
        let rows = text.tokens.len();
        let pages = rows.div_ceil(PAGE);
        match steps.last_mut() {
            Some(step) if step.rows + rows <= most => {
                step.texts.end = index + 1;
                step.rows += rows;
                step.pages += pages;
            }
            _ => steps.push(Step { texts: index..index + 1, rows, pages }),
        }
    }
    Steps(steps)
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
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(count: usize) -> Vec<Sequence> {
        let text = || Sequence { tokens: vec![1; 3], segments: vec![0; 3], left_out: 0 };
        (0..count).map(|_| text()).collect()
    }

    #[test]
    fn a_text_whose_numbers_are_not_finite_is_an_error_that_names_it() {
        let texts = texts(5);
        let widened = |states: &[f32]| states.iter().map(|state| f64::from(*state)).collect();
        let run = |broken: f32| {
            let steps = steps(&texts, Machine::Cpu);
            steps.run(&texts, &widened, |packed| {
                Ok(packed.tokens.iter().flat_map(|_| [1.0, broken]).collect())
            })
        };
        assert_eq!(run(2.0).unwrap(), vec![[1.0, 2.0].repeat(3); 5]);
        for broken in [f32::NAN, f32::INFINITY] {
            let error = run(broken).unwrap_err().to_string();
            assert!(error.ends_with("not finite (NaN or infinity) of text 1 of 5"), "{error}");
        }
    }

    #[test]
    fn what_steps_are_computed_in_is_made_once() {
        let spare = Spare::default();
        let mut made = Vec::new();
        for (rows, pages) in [(9, 3), (4, 1), (4, 5), (9, 5), (1, 1)] {
            let step = Step { texts: 0..1, rows, pages };
            let room = spare.take(step, |step| {
                made.push((step.rows, step.pages));
                Ok(())
            });
            spare.keep(room.unwrap());
        }
        assert_eq!(made, [(9, 3), (9, 5)]);
    }
}
