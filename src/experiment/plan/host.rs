//! Where a run ran, and on what engines.

use serde::{Deserialize, Serialize};

/// What the engines were told; none of it changes a byte of the answers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnginePlan {
    pub device: String,
    /// The GPU's compute capability or the CPU's instruction set: equal kinds give equal bytes.
    pub device_kind: String,
    pub threads: usize,
    pub max_batch: usize,
    /// Tokens that a sequence may draft a step; plans from before there were drafts do not say.
    #[serde(default)]
    pub draft: usize,
    pub max_in_flight: usize,
}

/// Where it ran; not compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    pub name: String,
    pub system: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
    /// What held of the sandbox, in words; `None`: there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sandbox: Option<String>,
}
