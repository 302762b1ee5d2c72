//! `versions.json`: the versions of wardround that wrote a run, and the hosts that computed it, where more than one did.

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

/// What wrote a run, in their order; those of the plan come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Writers {
    schema: u32,
    pub versions: Vec<String>,
    /// Names, all of one kind of device. Files from before they were kept name none.
    #[serde(default)]
    pub hosts: Vec<String>,
}

impl Writers {
    /// Of a run that nobody went on with.
    pub fn of(plan: &Plan) -> Writers {
        let (versions, hosts) = (vec![plan.version.clone()], vec![plan.host.machine.name.clone()]);
        Writers { schema: SCHEMA, versions, hosts }
    }

    pub(super) fn read(directory: &Path, plan: &Plan) -> Result<Writers, RunError> {
        let path = directory.join(FILE);
        if !fs_err::exists(&path)? {
            return Ok(Writers::of(plan));
        }
        match serde_json::from_slice::<Writers>(&line::read_file(&path)?) {
            Ok(read) if read.schema != SCHEMA => Err(RunError::Schema { path, found: read.schema }),
            Ok(read) => Ok(read),
            Err(error) => Err(RunError::Unreadable { path, reason: error.to_string() }),
        }
    }

    /// Writes the file, where the one that goes on with the run is another.
    pub(super) fn add(&mut self, directory: &Path, plan: &Plan) -> Result<(), RunError> {
        let before = self.clone();
        for (known, own) in
            [(&mut self.versions, &plan.version), (&mut self.hosts, &plan.host.machine.name)]
        {
            if !known.contains(own) {
                known.push(own.clone());
            }
        }
        if *self == before {
            return Ok(());
        }
        let text = serde_json::to_string(self).map_err(std::io::Error::from)? + "\n";
        Ok(whole_file::write_private(&directory.join(FILE), text.as_bytes())?)
    }
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
