//! How a system that searches came to its answer on a note: its turns and their scores, its searches, and the sources of its correction.

use serde::{Deserialize, Serialize};

use super::{SearchPlace, is_default};

/// How a note's answer was found. Scores are in hundredths, so that means are whole numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Trajectory {
    pub turns: Vec<TurnLine>,
    /// The number of reflexions written.
    pub reflexions: u32,
    /// Whether the turns ran out without an accepted answer.
    pub exhausted: bool,
    /// In the order in which they were made.
    pub searches: Vec<SearchPlace>,
    /// The passages that the final answer cites for its correction.
    pub evidence: Vec<EvidenceLine>,
    /// The number of labels that the final answer cites and no passage has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub unknown_labels: u32,
    /// Whether every word that the correction adds occurs in a passage that was shown; `null` if it adds none.
    pub grounded: Option<bool>,
    /// The added words that occur in no shown passage.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ungrounded: Vec<String>,
    /// The number of shown passages that share eight consecutive words with the note.
    #[serde(default, skip_serializing_if = "is_default")]
    pub leaks: u32,
    /// Whether the answer gave the id of one sentence and the text of another.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mismatch: bool,
    /// Whether the correction equals the sentence.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unchanged: bool,
}

/// One outer turn: its steps up to an answer, and the reviews of that answer.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TurnLine {
    pub round: u32,
    /// The number of steps, lost ones included.
    pub steps: u32,
    /// The number of steps whose action could not be parsed or does not exist.
    pub lost_turns: u32,
    /// Whether an answer was given.
    #[serde(rename = "final")]
    pub is_final: bool,
    /// The final scores of the reviews that could be parsed, in hundredths.
    pub scores: Vec<u32>,
    pub mean_hundredths: Option<u32>,
    /// The lowest score.
    pub min: Option<u32>,
    pub unread_reviews: u32,
    pub accepted: bool,
}

/// A passage that an answer cites.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct EvidenceLine {
    /// The search that found it.
    pub round: u32,
    pub step: u32,
    /// Its rank in that search, from 1.
    pub rank: u32,
    pub chunk: String,
    /// The id of the note's sentence that it is cited for.
    pub sentence: usize,
}
