//! What a trail has of requests and cases together with their texts, to repeat them. Who reads is recorded.

use std::path::Path;

use serde_json::Value;

use super::key::Key;
use super::line::{Event, Line};
use super::survey::Survey;
use super::{AuditOptions, Trail, content, user};
use crate::diagnosis::Failure;

/// A line and its texts.
pub struct Kept {
    pub line: Line,
    pub texts: Value,
}

/// What was read of a trail.
pub struct Read {
    /// The line that says what was loaded before the first of them.
    pub configuration: Option<Line>,
    pub kept: Vec<Kept>,
}

/// The texts of these lines; without any, of all finished cases whose texts are there. Each has its line by then that `verb` reads it.
///
/// # Errors
/// A line that has no text: it was never kept, or was deleted; a trail that was changed, or cannot be written.
pub fn read(directory: &Path, verb: &str, lines: &[u64]) -> Result<Read, Failure> {
    let (mut wanted, mut configuration): (Vec<Line>, Option<Line>) = (Vec::new(), None);
    let survey = Survey::read(directory, &[], |line| {
        let is_case = line.text("event") == "case" && line.text("status") == "done";
        let is_wanted = match lines.is_empty() {
            true => is_case && !line.text("content").is_empty(),
            false => lines.contains(&line.seq),
        };
        if is_wanted {
            wanted.push(line.clone());
        } else if wanted.is_empty() && line.fields.contains_key("models") {
            configuration = Some(line.clone());
        }
    })?;
    let is_gone = |line: &Line| survey.forgotten.contains(line.text("content"));
    if lines.is_empty() {
        wanted.retain(|line| !is_gone(line));
    }
    for seq in lines {
        let why = match wanted.iter().find(|line| line.seq == *seq) {
            None => "is none of the audit trail",
            Some(line) if line.text("content").is_empty() => "of the audit trail has no text",
            Some(line) if is_gone(line) => "of the audit trail had a text, which was deleted",
            Some(_) => continue,
        };
        return Err(Failure::usage(
            format!("line {seq} {why}"),
            "`wardround audit show` lists the lines; requests and cases under --audit-content full keep their texts",
        ));
    }
    let trail = Trail::open(&AuditOptions::new(directory), verb)?;
    let (actor, identity) = user();
    for line in &wanted {
        let event = Event::new("read").with("actor", actor.as_str());
        trail.count(event.with("identity", identity.as_str()).with("line", line.seq));
    }
    trail.finish()?;
    let key = Key::read(directory)?;
    let kept = wanted.into_iter().map(|line| {
        let texts = content::read(directory, &key, line.text("content"), line.seq)?;
        Ok(Kept { line, texts })
    });
    Ok(Read { configuration, kept: kept.collect::<Result<_, Failure>>()? })
}
