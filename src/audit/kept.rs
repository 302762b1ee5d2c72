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
    let mut cases = all(directory, &["case"], &[])?;
    cases.retain(|case| case.lacks.is_none());
    let cases = cases.into_iter().map(|Retained { kept, .. }| match kept.line.text("kept") {
        "" => Err(Failure::mismatch(format!(
            "line {} is of a version that did not sum all of a text: whether it was changed cannot be told",
            kept.line.seq()
        ))),
        _ => Ok(kept),
    });
    cases.collect()
}

/// A request or case of a trail, and what answered it.
pub struct Retained {
    /// Without texts where it lacks them.
    pub kept: Kept,
    /// Why it cannot be repeated.
    pub lacks: Option<String>,
    /// Of the `start` and the `config` line before it.
    pub version: String,
    pub arguments: Value,
}

/// Every line of these events, or those of these numbers, the oldest first.
///
/// # Errors
/// A trail that cannot be read, or was changed; a number that is none of theirs.
pub fn all(directory: &Path, events: &[&str], numbers: &[u64]) -> Result<Vec<Retained>, Failure> {
    let (mut found, mut version, mut arguments) = (Vec::new(), String::new(), Value::Null);
    let key = Key::find(directory)?;
    read::lines(directory, &Filter::default(), |line| {
        let is_asked = numbers.is_empty() || numbers.contains(&line.seq());
        match line.text("event") {
            "start" => line.text("version").clone_into(&mut version),
            "config" if line.fields.get("models").is_some() => {
                arguments = line.fields["arguments"].clone();
            }
            event if is_asked && events.contains(&event) => {
                let id = line.text("content");
                let lacks = match line.text("status") {
                    "done" if id.is_empty() => Some("its texts were not kept".to_owned()),
                    "done" if content::exists(directory, id) => None,
                    "done" => Some("its texts were deleted".to_owned()),
                    status => Some(format!("it ended as {status} then")),
                };
                let texts = match lacks {
                    None => content::read(directory, &line, key.as_ref())?,
                    Some(_) => Value::Null,
                };
                let (version, arguments) = (version.clone(), arguments.clone());
                found.push(Retained { kept: Kept { line, texts }, lacks, version, arguments });
            }
            _ => {}
        }
        Ok(())
    })?;
    let is_missing = |number: &&u64| !found.iter().any(|one| one.kept.line.seq() == **number);
    match numbers.iter().find(is_missing) {
        None => Ok(found),
        Some(number) => Err(Failure::usage(
            format!("line {number} of {} is none of {}", directory.display(), events.join(", ")),
            "`wardround audit show` lists them",
        )),
    }
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
