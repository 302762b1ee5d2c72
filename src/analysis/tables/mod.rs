//! Tables that runs and recipes share: cost, calibration, and all of notes.

pub mod calibration;
pub mod correction;
pub mod costs;
pub mod debate;
pub mod evidence;
pub mod notes;
pub mod positions;
mod search;

use super::health::{LABEL, NOTE, ParseHealth};
use super::table::{Table, TableBuilder};

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
    /// The columns that every table of figures has of the replies behind a row: how they were read.
    pub fn replies(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.text(LABEL, |row| of(row).map(|health| health.to_string()))
    }

    /// The same of what a row is set against.
    pub fn replies_of_the_other(self, of: impl Fn(R) -> Option<ParseHealth>) -> Self {
        self.text(format!("{LABEL}, of the other"), |row| of(row).map(|health| health.to_string()))
    }
}

/// What is said under a table that has such columns.
pub fn replies_note(table: &Table) -> Option<&'static str> {
    table.columns.iter().any(|column| column.label.starts_with(LABEL)).then_some(NOTE)
}
