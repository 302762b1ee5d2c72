//! `provenance.toml`: written beside fetched files, so that they can be verified where no hub is.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::HubError;
use super::cache::origin_of;
use crate::outside;

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

/// The hub id and the commit of a model in a directory: by its place in the hub's cache, or its provenance.
pub fn origin(directory: &Path) -> Result<Option<(String, String)>, HubError> {
    if let Some(origin) = origin_of(directory) {
        return Ok(Some(origin));
    }
    Ok(read::<Provenance>(directory)?.map(|listed| (listed.repository, listed.revision)))
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

/// What the file in `directory` says; `None` where there is none.
///
/// # Errors
/// The file is there and cannot be read as one.
pub fn read<T: DeserializeOwned>(directory: &Path) -> Result<Option<T>, HubError> {
    let path = directory.join(PROVENANCE);
    let Some(text) = outside::if_there(outside::text(&path))? else { return Ok(None) };
    outside::toml(&text).map(Some).map_err(|reason| HubError::Malformed { path, reason })
}

/// Puts the file in its place whole.
pub fn write(directory: &Path, provenance: &impl Serialize) -> Result<(), HubError> {
    let text = toml::to_string_pretty(provenance).map_err(io::Error::other)?;
    Ok(outside::replace(&directory.join(PROVENANCE), text, false)?)
}
