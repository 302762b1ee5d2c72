//! How a system that searches came to its answer on a note: its turns, what they were given for, and the sources of a correction.

use serde::{Deserialize, Serialize};

use super::SearchPlace;

/// The way to a note's answer. Scores are tenths, so that means compare as whole numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    pub turns: Vec<TurnLine>,
    /// Reflexions that were written.
    pub reflexions: u32,
    /// Whether every turn was used up without an accepted answer.
    pub exhausted: bool,
    /// In their order.
    pub searches: Vec<SearchPlace>,
    /// The passages that the final answer names for its correction.
    pub evidence: Vec<EvidenceLine>,
    /// Labels that the final answer names and no passage has.
    #[serde(default, skip_serializing_if = "is_none")]
    pub unknown_labels: u32,
    /// Whether every word that the correction brings in stands in a passage that was shown; `null` where it brings in none.
    pub grounded: Option<bool>,
    /// The words that it brings in and no shown passage has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ungrounded: Vec<String>,
    /// Shown passages that share eight words in a row with the note.
    #[serde(default, skip_serializing_if = "is_none")]
    pub leaks: u32,
    /// Whether the answer was put into its form with an id and the text of another sentence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mismatch: bool,
    /// Whether the correction is the sentence as it stands.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
}

/// One outer turn: steps up to an answer, and what became of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TurnLine {
    pub round: u32,
    /// Steps that were asked for, lost ones too.
    pub steps: u32,
    /// Steps whose action could not be read or is none.
    pub lost_turns: u32,
    /// Whether an answer was given.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// The final scores of the reviews that could be read, in tenths.
    pub scores: Vec<u32>,
    pub mean_tenths: Option<u32>,
    /// The least; under `release_compat` what the published release takes for it.
    pub min: Option<u32>,
    pub unread_reviews: u32,
    pub accepted: bool,
}

/// A passage that an answer names as its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EvidenceLine {
    /// The search that found it.
    pub round: u32,
    pub step: u32,
    /// Its place there, from 1.
    pub rank: u32,
    pub chunk: String,
    /// The sentence of the note that it is named for.
    pub sentence: usize,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives it by reference")]
fn is_none(count: &u32) -> bool {
    *count == 0
}
