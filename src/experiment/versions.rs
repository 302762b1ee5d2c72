//! `versions.json`: the versions of wardround that wrote a run, where more than one did.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::{line, whole_file};
use crate::record::SCHEMA;

/// The file's name in the run directory.
pub const FILE: &str = "versions.json";

/// The version at hand.
pub const THIS: &str = env!("CARGO_PKG_VERSION");

/// Whether the version at hand cannot know of a version: it is later, or none.
pub fn is_unknown(version: &str) -> bool {
    let numbers = |version: &str| {
        let numbers = version.split(['.', '-', '+']).take(3).map(|number| number.parse().ok());
        numbers.collect::<Option<Vec<u64>>>()
    };
    match (numbers(version), numbers(THIS)) {
        (Some(found), Some(this)) => found > this,
        _ => true,
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Versions {
    schema: u32,
    versions: Vec<String>,
}

/// The versions that wrote the run in `directory`, in their order; `planned` is the one that began it.
pub(super) fn read(directory: &Path, planned: &str) -> Result<Vec<String>, RunError> {
    let path = directory.join(FILE);
    if !fs_err::exists(&path)? {
        return Ok(vec![planned.to_owned()]);
    }
    match serde_json::from_slice::<Versions>(&line::read_file(&path)?) {
        Ok(read) if read.schema != SCHEMA => Err(RunError::Schema { path, found: read.schema }),
        Ok(read) => Ok(read.versions),
        Err(error) => Err(RunError::Unreadable { path, reason: error.to_string() }),
    }
}

/// Writes the file, where it has something to say.
pub(super) fn write(directory: &Path, versions: &[String]) -> Result<(), RunError> {
    if versions.len() < 2 {
        return Ok(());
    }
    let versions = Versions { schema: SCHEMA, versions: versions.to_vec() };
    let text = serde_json::to_string(&versions).map_err(std::io::Error::from)? + "\n";
    Ok(whole_file::write_private(&directory.join(FILE), text.as_bytes())?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_versions_and_what_is_none_are_unknown() {
        for known in [THIS, "0.0.9", "0.0.99", "0.0.1-rc.2"] {
            assert!(!is_unknown(known), "{known}");
        }
        for unknown in ["99.0.0", "99.0.0-rc.1", "", "ours", "0.x.1"] {
            assert!(is_unknown(unknown), "{unknown}");
        }
    }
}
