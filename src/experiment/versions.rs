//! `versions.json`: the versions of wardround that wrote a run, where more than one did.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::error::RunError;
use super::plan::Plan;
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

/// As the file has them; those of earlier versions say hosts, too.
#[derive(Serialize, Deserialize)]
struct Writers {
    schema: u32,
    versions: Vec<String>,
}

/// The versions that wrote a run, in their order; that of the plan comes first.
pub(super) fn read(directory: &Path, plan: &Plan) -> Result<Vec<String>, RunError> {
    let path = directory.join(FILE);
    if !fs_err::exists(&path)? {
        return Ok(vec![plan.version.clone()]);
    }
    match serde_json::from_slice::<Writers>(&line::read_file(&path)?) {
        Ok(read) if read.schema != SCHEMA => Err(RunError::Schema { path, found: read.schema }),
        Ok(read) => Ok(read.versions),
        Err(error) => Err(RunError::Unreadable { path, reason: error.to_string() }),
    }
}

/// Writes the file, where the version that goes on with the run is another.
pub(super) fn add(versions: &mut Vec<String>, own: &str, directory: &Path) -> Result<(), RunError> {
    if versions.iter().any(|known| known == own) {
        return Ok(());
    }
    versions.push(own.to_owned());
    let writers = Writers { schema: SCHEMA, versions: versions.clone() };
    let text = serde_json::to_string(&writers).map_err(std::io::Error::from)? + "\n";
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
