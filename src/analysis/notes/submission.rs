//! A run as MEDIQA-CORR 2024 takes it: a line a note.

use crate::analysis::mediqa_corr::submission::{Line, write};
use crate::diagnosis::Failure;
use crate::record::NoteLine;

/// A note whose flag could not be read, or that errored, has no line, and so counts as wrong.
///
/// # Errors
/// An id that the official scorer would not know for one.
pub fn submission<'a>(records: impl IntoIterator<Item = &'a NoteLine>) -> Result<String, Failure> {
    let line = |record: &'a NoteLine| {
        Some(Line {
            id: &record.item,
            is_wrong: record.flag.said().filter(|_| record.error.is_none())?,
            sentence_id: record.sentence_id,
            correction: record.correction.as_deref(),
        })
    };
    let lines: Vec<Line<'_>> = records.into_iter().filter_map(line).collect();
    write(&lines)
}
