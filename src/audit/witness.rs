//! What lies beside a trail's lines and must agree with them, its head and its key: nothing starts on a trail that does not, unless somebody says why.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::event::Sealed;
use super::files::{self, End, Line};
use super::key::{self, Key};
use super::{AuditOptions, Event, Head, head, read};
use crate::diagnosis::Failure;

/// What a trail goes on with.
pub(super) struct Held {
    pub key: Key,
    /// Whether the key lies nowhere yet: it is written behind the line that accepts it.
    pub is_new: bool,
    /// The line that says that somebody goes on all the same.
    pub accepted: Option<Sealed>,
}

/// Holds a trail's end against the head that was told last, and its key against the fingerprint that a line told last. A head is
/// written behind the lines that it is of, so no power cut leaves one that is ahead: lines were cut off, or written again. A key is
/// made before the first line. Where somebody goes on all the same, gives the line that says so.
///
/// # Errors
/// A trail that is behind its head, has another line there, or has lost its head; one with lines whose key is gone or another; a
/// directory or key that others may read or write.
pub(super) fn hold(directory: &Path, end: &End, options: &AuditOptions) -> Result<Held, Failure> {
    refuse_open(directory, "700")?;
    refuse_links(directory)?;
    let (head, own) = (Head::beside(directory)?, Key::find(directory)?);
    let is_new = own.is_none();
    if !is_new {
        refuse_open(&key::path(directory), "600")?;
    }
    let said = Said::of(directory, head.as_ref())?;
    let of_key = of_key(own.as_ref(), end, &said);
    let key = match own {
        Some(key) => key,
        None => Key::make()?,
    };
    // A trail's key is made behind its first head.
    if head.is_none() && is_new && end.seq == 0 {
        Head::before_the_first().write(directory)?;
        return Ok(Held { key, is_new, accepted: None });
    }
    let told: Vec<String> =
        [of_head(head.as_ref(), end, &said), of_key.clone()].into_iter().flatten().collect();
    if told.is_empty() {
        return Ok(Held { key, is_new, accepted: None });
    }
    let told = told.join("; ");
    let Some(accepted) = &options.accepted else {
        return Err(Failure::missing(
            format!("the audit trail {} was cut off or written again: {told}", directory.display()),
            "find out who did; `wardround audit accept DIR --why TEXT` goes on, and writes that down",
        ));
    };
    let former = of_key.map(|_| said.fingerprint.unwrap_or_else(|| "unknown".to_owned()));
    let event = Event::new("accept")
        .with("actor", accepted.actor.as_str())
        .with("why", accepted.why.as_str())
        .with("problem", told)
        .with("head_seq", head.as_ref().map(|head| head.seq))
        .with("head", head.map(|head| head.hash))
        .with("end_seq", end.seq)
        .with("former_key", former);
    let accepted = Some(event.seal(&key, options)?);
    Ok(Held { key, is_new, accepted })
}

/// What is wrong with the head, where something is.
fn of_head(head: Option<&Head>, end: &End, said: &Said) -> Option<String> {
    match head {
        None => Some(format!("{} is missing", head::FILE)),
        Some(head) if head.seq > end.seq => {
            Some(format!("its head is of line {}, and it ends with line {}", head.seq, end.seq))
        }
        Some(head) if !said.has_head => {
            Some(format!("its line {} is not the one that its head is of", head.seq))
        }
        Some(_) => None,
    }
}

/// What is wrong with the key, where something is.
fn of_key(key: Option<&Key>, end: &End, said: &Said) -> Option<String> {
    match (key, &said.fingerprint) {
        (None, _) if end.seq > 0 => Some("its key is missing".to_owned()),
        (Some(key), Some(told)) if key.fingerprint() != *told => {
            Some("its key is not the one that its last start had".to_owned())
        }
        _ => None,
    }
}

/// What the lines of a trail say of what lies beside them.
struct Said {
    has_head: bool,
    /// The last one of a key, where a line tells.
    fingerprint: Option<String>,
}

impl Said {
    fn of(directory: &Path, head: Option<&Head>) -> Result<Said, Failure> {
        let is_empty = head == Some(&Head::before_the_first());
        let mut said = Said { has_head: is_empty, fingerprint: None };
        if files::all(directory).is_err() {
            return Ok(said);
        }
        read::raw(directory, |raw| {
            let Ok(line) = Line::open(&raw.bytes) else { return Ok(()) };
            said.has_head |=
                head.is_some_and(|head| head.seq == line.seq() && head.hash == line.hash);
            if let Some(told) = line.fingerprint() {
                said.fingerprint = Some(told.to_owned());
            }
            Ok(())
        })?;
        Ok(said)
    }
}

/// Whether the trail has the line of a head.
pub(super) fn has(directory: &Path, head: &Head) -> Result<bool, Failure> {
    Ok(Said::of(directory, Some(head))?.has_head)
}

/// Refuses links among a trail's files: their lines, heads and keys would be another trail's.
fn refuse_links(directory: &Path) -> Result<(), Failure> {
    for entry in fs_err::read_dir(directory)? {
        let entry = entry?;
        if entry.file_type()?.is_symlink() {
            return Err(Failure::mismatch(format!(
                "{} is a link, which an audit trail does not make",
                entry.path().display()
            )));
        }
    }
    Ok(())
}

/// Refuses what others than its owner may read or write. `mode` is the one that it is made with.
fn refuse_open(path: &Path, mode: &str) -> Result<(), Failure> {
    let found = fs_err::metadata(path)?.permissions().mode() & 0o777;
    // A group's rights are its owner's to give: volumes and log shippers come with them.
    match found & 0o007 {
        0 => Ok(()),
        _ => Err(Failure::usage(
            format!("{} has mode {found:03o}: others may read or write it", path.display()),
            &format!(
                "find out who could; `chmod {mode} {}` closes it, and a key that others have read is no secret",
                path.display()
            ),
        )),
    }
}
