//! The items of a run.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// The questions of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DatasetPlan {
    pub name: String,
    pub format: String,
    pub path: String,
    pub sha256: String,
    /// Over the run's dataset.jsonl.
    pub items_sha256: String,
    /// The ids that run, in order.
    pub items: Vec<String>,
    /// Whether malformed rows were left out, and which, as earlier versions kept it: such a file is refused now.
    #[serde(default, skip_serializing)]
    pub skip_bad_rows: Option<IgnoredAny>,
    #[serde(default, skip_serializing)]
    pub skipped: Option<IgnoredAny>,
    /// Of the run that they are a part of, as earlier versions kept it; what ran are the items.
    #[serde(default, skip_serializing)]
    pub shard: Option<IgnoredAny>,
}
