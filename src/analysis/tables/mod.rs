//! Tables that runs and recipes share: cost, calibration, and all of notes; and the form of an evaluation.

pub mod calibration;
pub mod correction;
pub mod costs;
pub mod evaluation;
pub mod notes;
pub mod positions;
mod search;

use super::health::ParseHealth;

/// What a row is of, and what it is called.
pub struct Labelled<'a, T> {
    /// The heading that it stands under; may be empty.
    pub group: &'a str,
    pub label: &'a str,
    pub of: &'a T,
    /// How the replies behind it were read.
    pub health: Option<ParseHealth>,
}

impl<T> Labelled<'_, T> {
    fn read(&self) -> Option<String> {
        Some(self.health?.to_string())
    }
}
