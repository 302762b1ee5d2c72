//! What a trail has of one request or case together with its texts, where they are kept: to repeat it, or to have it rated.

use std::path::Path;

use serde_json::Value;

use super::content;
use super::files::Line;
use super::key::Key;
use super::read::{self, Filter};
use crate::diagnosis::Failure;

/// A line and its texts.
pub struct Kept {
    pub line: Line,
    pub texts: Value,
}

/// The line of a number, and its texts.
///
/// # Errors
/// No such line, or one without texts: they were never kept, or were deleted.
pub fn one(directory: &Path, seq: u64) -> Result<Kept, Failure> {
    let found = last(directory, &Filter::default(), |line| line.seq() == seq)?;
    let missing = || {
        Failure::usage(
            format!("the audit trail {} has no line {seq}", directory.display()),
            "`wardround audit show` lists its lines",
        )
    };
    let line = found.ok_or_else(missing)?;
    let id = line.text("content");
    if id.is_empty() {
        return Err(Failure::usage(
            format!("line {seq} of the audit trail has no text"),
            "only requests and cases under --audit-content full keep theirs",
        ));
    }
    let texts = content::read(directory, &line, Key::find(directory)?.as_ref())?;
    Ok(Kept { line, texts })
}

/// All finished cases whose texts are still there, the oldest first.
///
/// # Errors
/// A trail that cannot be read, or was changed.
pub fn cases(directory: &Path) -> Result<Vec<Kept>, Failure> {
    let filter = Filter { event: Some("case".to_owned()), ..Filter::default() };
    let mut cases = Vec::new();
    let key = Key::find(directory)?;
    read::lines(directory, &filter, |line| {
        let id = line.text("content");
        if line.text("status") == "done" && !id.is_empty() && content::exists(directory, id) {
            if line.text("kept").is_empty() {
                return Err(Failure::mismatch(format!(
                    "line {} is of a version that did not sum all of a text: whether it was changed cannot be told",
                    line.seq()
                )));
            }
            let texts = content::read(directory, &line, key.as_ref())?;
            cases.push(Kept { line, texts });
        }
        Ok(())
    })?;
    Ok(cases)
}

/// The last line with the name `config` before a line: what was loaded when it was written.
///
/// # Errors
/// A trail that cannot be read; no such line.
pub fn configuration(directory: &Path, seq: u64) -> Result<Line, Failure> {
    let filter = Filter { event: Some("config".to_owned()), ..Filter::default() };
    let is_one = |line: &Line| line.seq() < seq && line.fields.get("models").is_some();
    last(directory, &filter, is_one)?.ok_or_else(|| {
        Failure::mismatch(format!("no line before {seq} says which models were loaded"))
    })
}

/// The last of the wanted lines that is one.
fn last(
    directory: &Path,
    filter: &Filter,
    is_one: impl Fn(&Line) -> bool,
) -> Result<Option<Line>, Failure> {
    let mut found = None;
    read::lines(directory, filter, |line| {
        if is_one(&line) {
            found = Some(line);
        }
        Ok(())
    })?;
    Ok(found)
}
