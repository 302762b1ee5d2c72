//! Verification of a checkpoint's files by the SHA-256 sums that are known: the card's, those of provenance.toml, those
//! in the names of cached blobs.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::cache::is_hex;
use super::checkpoint::Checkpoint;
use super::digest::git_sum_of_file;
use super::provenance::Provenance;
use super::{FileDigest, HubError, digest_files};
use crate::outside::LONGEST_FILE;

/// Where a file's expected sum comes from, the most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Authority {
    /// The card embedded in this binary.
    Card,
    /// The `provenance.toml` beside the files.
    Provenance,
    /// The hub, by the name of the cached blob or the file's etag.
    Hub,
}

impl fmt::Display for Authority {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Card => "its card",
            Self::Provenance => "provenance.toml",
            Self::Hub => "the hub",
        })
    }
}

/// How a file compares with the sum that is known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ok(Authority),
    Mismatch {
        authority: Authority,
        expected: String,
    },
    /// No sum is known.
    Unknown,
    /// The card or the provenance lists the file, and it is not there.
    Missing,
}

impl Status {
    /// Of a file with this sum, beside the one that is known.
    pub fn of(known: Option<(Authority, String)>, actual: &str) -> Status {
        match known {
            None => Status::Unknown,
            Some((authority, expected)) if expected == actual => Status::Ok(authority),
            Some((authority, expected)) => Status::Mismatch { authority, expected },
        }
    }
}

/// The result of verifying one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCheck {
    /// Relative to the checkpoint.
    pub name: String,
    pub status: Status,
    /// The sum of the file as it is; `None` where it is missing.
    pub sha256: Option<String>,
}

/// Refuses a file that is no weights and longer than any that is read: before a byte of it is summed.
///
/// # Errors
/// The first such file; one that cannot be looked at.
pub fn refuse_long(checkpoint: &Checkpoint) -> Result<(), HubError> {
    for (_, path) in checkpoint.named_files() {
        let bytes = fs_err::metadata(&path)?.len();
        if bytes > LONGEST_FILE && !checkpoint.files.weights.contains(&path) {
            let reason = format!("it is longer than {LONGEST_FILE} bytes");
            return Err(HubError::Malformed { path, reason });
        }
    }
    Ok(())
}

/// Hashes every file of the checkpoint and compares it with the most trusted sum that is known, in the order of the
/// names.
///
/// # Errors
/// A file cannot be read, or the provenance is broken. A mismatch is not an error here: it is in the list.
pub fn verify(checkpoint: &Checkpoint) -> Result<Vec<FileCheck>, HubError> {
    refuse_long(checkpoint)?;
    let known = known_sums(checkpoint)?;
    let missing =
        |name: &String| FileCheck { name: name.clone(), status: Status::Missing, sha256: None };
    let mut checks: BTreeMap<String, FileCheck> =
        known.keys().map(|name| (name.clone(), missing(name))).collect();
    let files = checkpoint.named_files();
    for (FileDigest { name, sha256 }, (_, path)) in digest_files(&files)?.into_iter().zip(&files) {
        let expected = known.get(&name).cloned().flatten();
        let expected = expected.or_else(|| Some((Authority::Hub, blob_sum(path)?)));
        let actual = match &expected {
            Some((_, expected)) if is_hex(expected, 40) => git_sum_of_file(path)?,
            _ => sha256.clone(),
        };
        let status = Status::of(expected, &actual);
        let check = FileCheck { name: name.clone(), status, sha256: Some(sha256) };
        checks.insert(name, check);
    }
    Ok(checks.into_values().collect())
}

/// Every file that the card or the provenance lists, with the sum that it should have: the card's, else the
/// provenance's.
fn known_sums(
    checkpoint: &Checkpoint,
) -> Result<BTreeMap<String, Option<(Authority, String)>>, HubError> {
    let provenance = Provenance::read(&checkpoint.directory)?;
    let listed = provenance.into_iter().flat_map(|listed| listed.sha256);
    let mut sums: BTreeMap<_, _> =
        listed.map(|(name, sum)| (name, Some((Authority::Provenance, sum)))).collect();
    let is_here = |name: &str| checkpoint.directory.join(name).is_file();
    let card = checkpoint.card.filter(|card| checkpoint.revision.as_ref() == Some(&card.revision));
    for file in card.into_iter().flat_map(|card| &card.files) {
        // Where another form serves instead, the first is not missed.
        if !is_here(&file.name) && file.instead.as_deref().is_some_and(is_here) {
            continue;
        }
        let sum = sums.entry(file.name.clone()).or_default();
        if let Some(own) = &file.sha256 {
            *sum = Some((Authority::Card, own.clone()));
        }
    }
    Ok(sums)
}

/// The sum in the name of the blob that a cached file links to: a sha256, or of a small file git's sha1.
fn blob_sum(path: &Path) -> Option<String> {
    let blob: PathBuf = fs_err::read_link(path).ok()?;
    let name = blob.file_name()?.to_str()?;
    (is_hex(name, 64) || is_hex(name, 40)).then(|| name.to_owned())
}
