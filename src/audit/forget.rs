//! Deleting kept texts: a line says which, who asked and why, then the files go. The lines stay.

use serde_json::json;

use super::line::Line;
use super::survey::Survey;
use super::trail::Trail;
use super::{content, own};
use crate::diagnosis::Failure;

/// Texts that one line names at most.
const NAMED: usize = 1000;

/// Deletes the texts of the lines that are meant; a line without one is passed over. Gives how many there were.
///
/// # Errors
/// A trail that cannot be read or written.
pub fn forget(
    trail: &Trail,
    is_meant: impl Fn(&Line) -> bool,
    why: &str,
) -> Result<usize, Failure> {
    let directory = &trail.options().directory;
    let mut wanted = Vec::new();
    let survey = Survey::read(directory, &[], |line| {
        if is_meant(line) && !line.text("content").is_empty() {
            wanted.push(line.text("content").to_owned());
        }
    })?;
    wanted.retain(|sum| !survey.forgotten.contains(sum));
    for sums in wanted.chunks(NAMED) {
        let event = own("forget").with("why", why).with("count", sums.len());
        trail.write(event.with("forgotten", json!(sums)))?;
        for sum in sums {
            content::remove(directory, sum)?;
        }
    }
    Ok(wanted.len())
}
