//! No sandbox: the system is not Linux, or the program was built without it.

use super::{Network, Policy, Report};

const WHY: &str = "files, network and processes, since this build has no sandbox for this system";

pub fn restrict_files(policy: &Policy) -> Report {
    Report { network: policy.network, lacking: vec![WHY.to_owned()], ..Report::default() }
}

pub fn restrict_calls(_: Network) -> Result<(), String> {
    Err(WHY.to_owned())
}
