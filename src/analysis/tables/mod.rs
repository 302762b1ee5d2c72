//! Tables that runs and recipes share: cost, calibration, and all of notes.

pub mod calibration;
pub mod correction;
pub mod costs;
pub mod debate;
pub mod notes;
pub mod positions;
mod search;

use super::health::{LABEL, ParseHealth};
use super::table::{Cell, TableBuilder};

/// What a row is of, and what it is called.
pub struct Labelled<'a, T> {
    /// The heading that it stands under; may be empty.
    pub group: &'a str,
    pub label: &'a str,
    pub of: &'a T,
    /// How the replies behind it were read.
    pub health: Option<ParseHealth>,
}

impl<R: Copy> TableBuilder<R> {
    /// How the replies behind a row were read: of every table of accuracies, and of what a run's page has beside them.
    pub fn replies(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.text(LABEL, |row| of(row).map(|health| health.to_string()))
    }
}

/// A share of a count, of which there may be none.
fn percent(count: usize, of: usize) -> Cell {
    if of == 0 { Cell::Nothing } else { Cell::Number(100.0 * count as f64 / of as f64, 1) }
}
