//! A table or figure of a paper as one file: which methods on which datasets, and what is read off them.
//!
//! ```text
//! recipe file → cells (method × dataset), each a run → results: cells, and what the analyses compare → tables
//! ```

pub mod analysis;
pub mod built_in;
pub mod cells;
mod check;
pub mod file;
#[cfg(test)]
pub(crate) mod fixtures;
pub mod improvement;
pub mod manifest;
pub mod notes;
pub mod paired;
pub mod paper;
pub mod results;
pub mod run;
pub mod tables;

pub use file::Recipe;

use std::fmt::Display;

use crate::diagnosis::Failure;

/// That a file of recipes is none.
pub fn malformed(path: impl Display, problem: impl Display) -> Failure {
    Failure::refused(format!("{path}: {problem}"))
}
