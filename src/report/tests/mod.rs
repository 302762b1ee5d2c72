//! Pages as a whole, from fixtures of each kind of run.

pub mod fixtures;
mod note_page;
pub mod notes;
mod question_page;
pub mod questions;
mod snapshots;
mod trajectory;

use super::ReportError;
use crate::analysis::notes::CorrectionScorer;
use crate::experiment::contents::Contents;

/// The page of a run whose cases fit into one.
fn only_page(contents: &Contents, scorer: &CorrectionScorer) -> Result<String, ReportError> {
    let pages = super::render(contents, scorer)?;
    let [(file, page)] = <[_; 1]>::try_from(pages).expect("one page");
    assert_eq!(file, "report.html");
    Ok(page)
}
