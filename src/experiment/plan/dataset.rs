//! The items of a run, and the part of them that a shard takes.

use serde::{Deserialize, Serialize};

use crate::data::SkippedRow;
use crate::experiment::error::RunError;
use crate::experiment::shard::{Shard, ShardPlan};
use crate::experiment::texts;
use crate::record::ItemText;

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
    /// Where they are a part of another run's; absent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shard: Option<ShardPlan>,
}

impl DatasetPlan {
    /// Keeps a part of the items, and gives their texts, of which `texts` are all.
    ///
    /// # Errors
    /// A shard that none of the items falls to.
    pub fn shard(&mut self, part: Shard, texts: Vec<ItemText>) -> Result<Vec<ItemText>, RunError> {
        if part.index() >= self.items.len() {
            return Err(RunError::EmptyShard { part, items: self.items.len() });
        }
        self.shard = Some(ShardPlan {
            part,
            whole_items: self.items.len(),
            whole_sha256: self.items_sha256.clone(),
        });
        self.items = part.take(std::mem::take(&mut self.items));
        let texts = part.take(texts);
        self.items_sha256 = texts::sha256(&texts)?;
        Ok(texts)
    }
}
