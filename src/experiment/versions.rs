//! The versions of wardround that wrote a run. Of one that another version went on with, as earlier ones could, `versions.json` has them.

use std::path::Path;

use serde::Deserialize;

use super::error::RunError;
use super::line;
use super::plan::Plan;
use crate::record::Schema;

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

/// As the file has them.
#[derive(Deserialize)]
struct Writers {
    #[expect(dead_code, reason = "another schema is refused as it is read")]
    schema: Schema,
    versions: Vec<String>,
}

/// The versions that wrote a run, in their order; that of the plan comes first.
pub(super) fn read(directory: &Path, plan: &Plan) -> Result<Vec<String>, RunError> {
    let path = directory.join("versions.json");
    if !fs_err::exists(&path)? {
        return Ok(vec![plan.version.clone()]);
    }
    let read: Result<Writers, _> = serde_json::from_slice(&line::read_file(&path)?);
    read.map(|writers| writers.versions)
        .map_err(|error| RunError::Unreadable { path, reason: error.to_string() })
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
