//! `provenance.toml`: written beside fetched files, so that they can be verified where no hub is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::cache::origin_of;
use super::{HubError, read_toml};

/// The file's name.
pub const PROVENANCE: &str = "provenance.toml";

/// Where a model's files came from, and their sums as they arrived.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Provenance {
    pub repository: String,
    /// The commit.
    pub revision: String,
    /// File name to sum, 64 lower-case hexadecimal digits each.
    pub sha256: BTreeMap<String, String>,
}

impl Provenance {
    /// What `directory` says of itself; `None` where it says nothing.
    ///
    /// # Errors
    /// The file is there and cannot be read or is not a provenance.
    pub fn read(directory: &Path) -> Result<Option<Self>, HubError> {
        read_toml(directory.join(PROVENANCE))
    }
}

/// The hub id and the commit of a model in a directory: by its place in the hub's cache, or its provenance.
pub fn origin(directory: &Path) -> Result<Option<(String, String)>, HubError> {
    if let Some(origin) = origin_of(directory) {
        return Ok(Some(origin));
    }
    Ok(Provenance::read(directory)?.map(|listed| (listed.repository, listed.revision)))
}

/// What was fetched into a directory of datasets, by the files' paths in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    #[serde(default)]
    pub files: BTreeMap<String, FetchedFile>,
}

/// A file as it was fetched. Earlier versions wrote more of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct FetchedFile {
    /// The address.
    pub source: String,
    /// Of the file here.
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
