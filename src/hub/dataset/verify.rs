//! Verification of a directory of datasets by the sums that are known: the cards', else those of provenance.toml.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::{DatasetCard, Record};
use crate::hub::{Authority, FileCheck, HubError, Status, digest_files};

/// How many of a dataset's files a directory has.
pub fn here(card: &DatasetCard, directory: &Path) -> usize {
    card.files().filter(|(_, file)| directory.join(&file.path).is_file()).count()
}

/// Hashes the files of every dataset of which the directory has one, and of what was fetched into it, and compares them
/// with what is known, in the order of their paths.
///
/// # Errors
/// A file that cannot be read; a directory without a dataset. A mismatch is not an error here: it is in the list.
pub fn verify_datasets(directory: &Path) -> Result<Vec<FileCheck>, HubError> {
    if !directory.is_dir() {
        return Err(HubError::NoDataDirectory { path: directory.to_owned() });
    }
    let known = known_sums(directory)?;
    if known.is_empty() {
        return Err(HubError::NoDatasets { path: directory.to_owned() });
    }
    let is_here = |name: &&String| directory.join(name).is_file();
    let present: Vec<(String, PathBuf)> =
        known.keys().filter(is_here).map(|name| (name.clone(), directory.join(name))).collect();
    let digests = digest_files(&present)?.into_iter();
    let mut sums: BTreeMap<String, String> =
        digests.map(|digest| (digest.name, digest.sha256)).collect();
    let checks = known.into_iter().map(|(name, known)| {
        let sha256 = sums.remove(&name);
        let status = sha256.as_ref().map_or(Status::Missing, |sum| Status::of(known, sum));
        FileCheck { name, status, sha256 }
    });
    Ok(checks.collect())
}

type Known = BTreeMap<String, Option<(Authority, String)>>;

fn known_sums(directory: &Path) -> Result<Known, HubError> {
    let record = Record::read(directory)?;
    let fetched = record.files.iter();
    let mut known: Known = fetched
        .map(|(path, file)| (path.clone(), Some((Authority::Provenance, file.sha256.clone()))))
        .collect();
    for card in DatasetCard::all() {
        let is_fetched = card.files().any(|(_, file)| record.files.contains_key(&file.path));
        if !is_fetched && here(card, directory) == 0 {
            continue;
        }
        for (_, file) in card.files() {
            let sum = known.entry(file.path.clone()).or_default();
            // A converted file's sum is known once it is here; the card's is of the published one.
            if let (None, Some(own)) = (file.convert, &file.sha256) {
                *sum = Some((Authority::Card, own.clone()));
            }
        }
    }
    Ok(known)
}
