//! What of a sandbox held, in words.

use std::fmt;

use super::Network;

/// What the kernel did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The version of Landlock's interface that files are restricted by; `None`: they are not.
    pub files: Option<u32>,
    /// Whether there are no core dumps, and nobody may look in.
    pub is_hidden: bool,
    /// Whether calls are restricted by seccomp.
    pub calls: bool,
    pub network: Network,
    /// What is not enforced, and why.
    pub lacking: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut held = Vec::new();
        if let Some(version) = self.files {
            held.push(format!("files by Landlock ABI {version}"));
        }
        if self.calls {
            held.push(match self.network {
                Network::Open => "processes by seccomp".to_owned(),
                _ => "network and processes by seccomp".to_owned(),
            });
        }
        if held.is_empty() {
            held.push("nothing is enforced".to_owned());
        }
        write!(formatter, "sandbox: {}", held.join(", "))?;
        let mut lacking = self.lacking.clone();
        if self.network == Network::Open {
            lacking.push("network, since models are fetched or asked elsewhere".to_owned());
        }
        match lacking.is_empty() {
            true => Ok(()),
            false => write!(formatter, "; not enforced: {}", lacking.join(", ")),
        }
    }
}
