//! `provenance.toml`: written beside files fetched into a plain folder, so that they can be verified where no hub is.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{HubError, read_toml};

/// The file's name.
pub const PROVENANCE: &str = "provenance.toml";

/// Where a folder's files came from, and their sums as they arrived.
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
