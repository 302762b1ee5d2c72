//! Verification of the files of a model or of datasets by the sums that are known: the card's, those of provenance.toml, those in the names
//! of cached blobs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::provenance::{self, Record};
use super::{Checkpoint, DatasetCard, FileDigest, HubError, Provenance, digest_files};
use crate::digest::is_sha256;
use crate::outside::LONGEST_FILE;

/// Where a file's expected sum comes from, the most trusted first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, strum::Display)]
pub enum Authority {
    /// The one embedded in this binary.
    #[strum(to_string = "its card")]
    Card,
    /// That beside the files.
    #[strum(to_string = "provenance.toml")]
    Provenance,
    /// By the name of the cached blob, or its list of files.
    #[strum(to_string = "the hub")]
    Hub,
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

/// The result of verifying one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileCheck {
    /// Relative to the directory.
    pub name: String,
    pub status: Status,
    /// The sum of the file as it is; `None` where it is missing.
    pub sha256: Option<String>,
}

/// Every file that should be there, with the sum that it should have, where one is known.
type Known = BTreeMap<String, Option<(Authority, String)>>;

/// Hashes every file of the checkpoint and compares it with the most trusted sum that is known, in the order of the
/// names.
///
/// # Errors
/// A file cannot be read, or is no weights and longer than any that is read; the provenance is broken. A mismatch is not an error here: it
/// is in the list.
pub fn verify(checkpoint: &Checkpoint) -> Result<Vec<FileCheck>, HubError> {
    let files = checkpoint.named_files();
    for (_, path) in &files {
        let is_long = fs_err::metadata(path)?.len() > LONGEST_FILE;
        if is_long && !checkpoint.files.weights.contains(path) {
            let reason = format!("it is longer than {LONGEST_FILE} bytes");
            return Err(HubError::Malformed { path: path.clone(), reason });
        }
    }
    let directory = &checkpoint.directory;
    let listed: Option<Provenance> = provenance::read(directory)?;
    let mut known = of_provenance(listed.map(|listed| listed.sha256).unwrap_or_default());
    let is_here = |name: &str| directory.join(name).is_file();
    let card = checkpoint.card.filter(|card| checkpoint.revision.as_ref() == Some(&card.revision));
    for file in card.into_iter().flat_map(|card| &card.files) {
        // Where another form serves instead, the first is not missed.
        if is_here(&file.name) || !file.instead.as_deref().is_some_and(is_here) {
            expect(&mut known, &file.name, file.sha256.as_deref());
        }
    }
    compare(known, &files)
}

/// Hashes the files of every dataset of which the directory has one, and of what was fetched into it, and compares them
/// with what is known, in the order of their paths.
///
/// # Errors
/// A file that cannot be read; a directory without a dataset. A mismatch is not an error here: it is in the list.
pub fn verify_datasets(directory: &Path) -> Result<Vec<FileCheck>, HubError> {
    let Record { files } = provenance::read(directory)?.unwrap_or_default();
    let is_fetched = |card: &&DatasetCard| {
        let mut own = card.files.iter().map(|file| &file.path);
        own.any(|path| directory.join(path).is_file() || files.contains_key(path))
    };
    let cards: Vec<_> = DatasetCard::all().iter().filter(is_fetched).collect();
    let mut known = of_provenance(files.into_iter().map(|(path, file)| (path, file.sha256)));
    for file in cards.into_iter().flat_map(|card| &card.files) {
        // A converted file's sum is known once it is here; the card's is of the published one.
        let own = file.sha256.as_deref().filter(|_| file.convert.is_none());
        expect(&mut known, &file.path, own);
    }
    if known.is_empty() {
        return Err(HubError::NoDatasets { path: directory.to_owned() });
    }
    let here = known.keys().map(|name| (name.clone(), directory.join(name)));
    let here: Vec<_> = here.filter(|(_, path)| path.is_file()).collect();
    compare(known, &here)
}

fn of_provenance(sums: impl IntoIterator<Item = (String, String)>) -> Known {
    sums.into_iter().map(|(name, sum)| (name, Some((Authority::Provenance, sum)))).collect()
}

/// A card's file; its sum goes before another.
fn expect(known: &mut Known, name: &str, sum: Option<&str>) {
    let entry = known.entry(name.to_owned()).or_default();
    if let Some(sum) = sum {
        *entry = Some((Authority::Card, sum.to_owned()));
    }
}

fn compare(mut known: Known, files: &[(String, PathBuf)]) -> Result<Vec<FileCheck>, HubError> {
    let mut checks = Vec::new();
    for (FileDigest { name, sha256 }, (_, path)) in digest_files(files)?.into_iter().zip(files) {
        let expected = known.remove(&name).flatten();
        let status = match expected.or_else(|| Some((Authority::Hub, blob_sum(path)?))) {
            None => Status::Unknown,
            Some((authority, expected)) => match sha256 == expected {
                true => Status::Ok(authority),
                false => Status::Mismatch { authority, expected },
            },
        };
        checks.push(FileCheck { name, status, sha256: Some(sha256) });
    }
    let missing =
        known.into_keys().map(|name| FileCheck { name, status: Status::Missing, sha256: None });
    checks.extend(missing);
    checks.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(checks)
}

/// The sum in the name of the blob that a cached file links to: a small file's is no sha256.
fn blob_sum(path: &Path) -> Option<String> {
    let blob: PathBuf = fs_err::read_link(path).ok()?;
    let name = blob.file_name()?.to_str()?;
    is_sha256(name).then(|| name.to_owned())
}
