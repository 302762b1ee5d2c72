//! The items of a run.

use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use crate::data::SkippedRow;

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
    /// Whether rows that are not what the format says are left out, not refused.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub skip_bad_rows: bool,
    /// The rows of the file that were left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<SkippedRow>,
    /// Of the run that they are a part of, as earlier versions kept it; what ran are the items.
    #[serde(default, skip_serializing)]
    pub shard: Option<IgnoredAny>,
}
