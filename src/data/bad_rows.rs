//! What becomes of malformed rows: the file is refused, or they are left out and listed.

use serde::{Deserialize, Serialize};

/// How malformed rows are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRows {
    /// The file is refused.
    #[default]
    Refuse,
    /// The row is left out and listed.
    Skip,
}

impl BadRows {
    pub fn skip_where(skip: bool) -> BadRows {
        match skip {
            true => BadRows::Skip,
            false => BadRows::Refuse,
        }
    }
}

/// A row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedRow {
    /// The row's position in the file.
    pub row: String,
    pub problem: String,
}
