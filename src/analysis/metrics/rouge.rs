//! What every ROUGE gives (Lin, 2004): the overlap of a hypothesis with its reference in words, pairs of words, and
//! subsequences.

use serde::{Deserialize, Serialize};

/// Each 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Score {
    /// The share of the hypothesis that the reference has.
    pub precision: f64,
    /// The share of the reference that the hypothesis has.
    pub recall: f64,
    pub f: f64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rouge {
    pub rouge1: Score,
    pub rouge2: Score,
    pub rouge_l: Score,
}

/// `overlap / of`, and 0 of nothing.
pub(super) fn share(overlap: usize, of: usize) -> f64 {
    match of {
        0 => 0.0,
        _ => overlap as f64 / of as f64,
    }
}
