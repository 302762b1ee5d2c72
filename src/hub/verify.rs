//! Holding a checkpoint's files against the sums that are known: the card's, the folder's provenance, the blobs' names.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::cache::is_hex;
use super::checkpoint::Checkpoint;
use super::provenance::Provenance;
use super::{FileDigest, HubError, digest_files};

/// Who says what a file's sum should be, the most trusted first.
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

/// What came of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Ok(Authority),
    Mismatch {
        authority: Authority,
        expected: String,
    },
    /// No sha256 is known. A small file's blob is named by git's sha1, which is not checked.
    Unknown,
    /// The card or the provenance lists the file, and it is not there.
    Missing,
}

/// One file, held against what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCheck {
    /// Relative to the checkpoint.
    pub name: String,
    pub status: Status,
    /// What the file's bytes have; `None` where it is missing.
    pub sha256: Option<String>,
}

/// Sums every file of the checkpoint and holds it against the best authority there is, in the order of the names.
///
/// # Errors
/// A file cannot be read, or the provenance is broken. A mismatch is no error here: it is in the list.
pub fn verify(checkpoint: &Checkpoint) -> Result<Vec<FileCheck>, HubError> {
    let files = checkpoint.named_files();
    let known = KnownSums::of(checkpoint)?;
    let mut checks: BTreeMap<String, FileCheck> = known
        .listed()
        .map(|name| {
            (
                name.clone(),
                FileCheck {
                    name,
                    status: Status::Missing,
                    sha256: None,
                },
            )
        })
        .collect();
    for (FileDigest { name, sha256 }, (_, path)) in digest_files(&files)?.into_iter().zip(&files) {
        let status = match known.expected(&name, path) {
            None => Status::Unknown,
            Some((authority, expected)) if expected == sha256 => Status::Ok(authority),
            Some((authority, expected)) => Status::Mismatch {
                authority,
                expected,
            },
        };
        checks.insert(
            name.clone(),
            FileCheck {
                name,
                status,
                sha256: Some(sha256),
            },
        );
    }
    Ok(checks.into_values().collect())
}

struct KnownSums {
    card: BTreeMap<String, Option<String>>,
    provenance: BTreeMap<String, String>,
}

impl KnownSums {
    fn of(checkpoint: &Checkpoint) -> Result<Self, HubError> {
        let own_revision =
            |card: &&super::Card| checkpoint.revision.as_ref() == Some(&card.revision);
        // Where another form serves instead, the first is not missed.
        let is_replaced = |file: &&super::CardFile| {
            let is_here = |name: &str| checkpoint.directory.join(name).is_file();
            !is_here(&file.name) && file.instead.as_deref().is_some_and(is_here)
        };
        let card = checkpoint
            .card
            .filter(own_revision)
            .into_iter()
            .flat_map(|card| &card.files)
            .filter(|file| !is_replaced(file));
        Ok(Self {
            card: card
                .map(|file| (file.name.clone(), file.sha256.clone()))
                .collect(),
            provenance: Provenance::read(&checkpoint.directory)?
                .map(|provenance| provenance.sha256)
                .unwrap_or_default(),
        })
    }

    fn listed(&self) -> impl Iterator<Item = String> {
        self.card.keys().chain(self.provenance.keys()).cloned()
    }

    fn expected(&self, name: &str, path: &Path) -> Option<(Authority, String)> {
        let card = self
            .card
            .get(name)
            .cloned()
            .flatten()
            .map(|sum| (Authority::Card, sum));
        card.or_else(|| Some((Authority::Provenance, self.provenance.get(name)?.clone())))
            .or_else(|| Some((Authority::Hub, blob_sum(path)?)))
    }
}

/// The sum in the name of the blob that a cached file links to; git's own names are shorter.
fn blob_sum(path: &Path) -> Option<String> {
    let blob: PathBuf = fs_err::read_link(path).ok()?;
    let name = blob.file_name()?.to_str()?;
    is_hex(name, 64).then(|| name.to_owned())
}
