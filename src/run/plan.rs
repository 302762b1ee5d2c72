//! `plan.toml`: everything a run resolved before its first call, enough to run it again.

use serde::{Deserialize, Serialize};

/// The plan. Two runs of one plan on one device kind by one binary give the same bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    /// The version of wardround that wrote the plan.
    pub version: String,
    /// When, in UTC (RFC 3339); not compared.
    pub created_at: String,
    pub system: String,
    /// Whether the members answer noise: every weight is synthetic.
    pub synthetic: bool,
    pub seed: u64,
    pub runs: u32,
    /// Whether completions are free text (the papers' setting) rather than constrained by a grammar.
    pub free: bool,
    /// The system's switches, resolved: every one of them, defaults too.
    pub settings: toml::Table,
    pub dataset: DatasetPlan,
    /// In panel order.
    pub panel: Vec<MemberPlan>,
    pub engine: EnginePlan,
    pub host: HostPlan,
}

/// The questions of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetPlan {
    pub name: String,
    pub format: String,
    pub path: String,
    pub sha256: String,
    /// The ids that run, in order.
    pub items: Vec<String>,
}

/// One member of the panel: a role on a backbone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MemberPlan {
    /// The role's short name: `sym`, `ddx`, `guide`.
    pub agent: String,
    /// What the panel calls the backbone: a card's name, a hub id, or a directory's name.
    pub backbone: String,
    pub path: String,
    /// The hub's repository and the commit it was resolved to, where the model came from the hub or its cache.
    pub repository: Option<String>,
    pub revision: Option<String>,
    /// Over the sorted `name sha256` lines of the weight files.
    pub weights_sha256: String,
    pub tokenizer_sha256: String,
    pub template_sha256: String,
    pub family: String,
    pub dtype: String,
    pub quantisation: String,
    /// Whether a `<think>` section is asked for, where the template knows the switch.
    pub thinking: bool,
    pub temperature: f32,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub eos_ids: Vec<u32>,
    /// Tokens that a sequence may hold.
    pub context: usize,
}

/// What the engines were told; none of it changes a byte of the answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnginePlan {
    pub device: String,
    /// The compute capability, resp. the CPU's instruction set: equal kinds give equal bytes.
    pub device_kind: String,
    pub threads: usize,
    pub max_batch: usize,
    pub max_in_flight: usize,
}

/// Where it ran; not compared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HostPlan {
    pub name: String,
    pub system: String,
    pub cpu: String,
    pub cores: usize,
    pub memory_bytes: u64,
}
