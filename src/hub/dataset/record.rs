//! `provenance.toml` of a directory of datasets: where each file came from, and its sum as it arrived.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::hub::provenance::PROVENANCE;
use crate::hub::{HubError, read_toml};

/// What was fetched into a directory, by the files' paths in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    #[serde(default)]
    pub files: BTreeMap<String, FetchedFile>,
}

/// A file as it was fetched.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FetchedFile {
    /// The card's name.
    pub dataset: String,
    pub repository: String,
    /// The commit.
    pub revision: String,
    /// In the repository.
    pub source: String,
    /// Of the published file.
    pub source_sha256: String,
    /// Of the file here: the same, unless it was converted.
    pub sha256: String,
}

impl Record {
    /// What the directory says; nothing where it says nothing.
    ///
    /// # Errors
    /// The file is there and cannot be read as one.
    pub fn read(directory: &Path) -> Result<Self, HubError> {
        Ok(read_toml(directory.join(PROVENANCE))?.unwrap_or_default())
    }
}
