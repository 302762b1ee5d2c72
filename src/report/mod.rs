//! Pages that open from disk and load nothing: `report.html` of a run and of a recipe, runs side by side, and the sheet on which clinicians
//! rate.
//!
//! What models wrote is hostile input here: it reaches a page only through `kit::escape`, and the page's own content policy forbids every
//! script but ours. Tables' contents are also what `report --format` prints.

pub mod beside;
pub mod compare;
mod item;
mod kit;
pub mod rating;
pub mod recipe;
mod run;
pub mod table;
#[cfg(test)]
mod tests;

use thiserror::Error;

pub use kit::content_policy;
pub use run::{file as run_page, render, tables};

use crate::diagnosis::{Blame, Diagnosis};

/// Why a page could not be written.
#[derive(Debug, Error)]
#[error("cannot render the report: {0:#}")]
pub struct ReportError(#[from] minijinja::Error);

impl Diagnosis for ReportError {
    fn blame(&self) -> Blame {
        Blame::Machine
    }

    fn hint(&self) -> Option<String> {
        Some("the page's templates are part of the binary; please report this".into())
    }
}
