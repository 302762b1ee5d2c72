//! A question's line in `items.jsonl`: what a system answered, and the rounds it took.

use serde::{Deserialize, Serialize};

use super::Stage;

/// What one round of answers came to. Vectors run over `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundLine {
    pub round: u32,
    pub stage: Stage,
    /// Who answered, in the order of the system; one that was asked more than once comes more than once.
    pub agents: Vec<String>,
    /// The agent behind Doctor A, Doctor B, … in this round's brief; empty in round 0, which has none.
    pub labels: Vec<String>,
    /// Normalised letters; empty where none was found.
    pub answers: Vec<String>,
    /// Empty where the system asks for none.
    pub confidences: Vec<f64>,
    /// What each answer counts in the vote; recalibrated confidences, for MED-MAD (B.8).
    pub weights: Vec<f64>,
    /// What the vote over this round's answers gives.
    pub aggregate: String,
    /// What every agent was shown of the others in this round; empty in round 0.
    pub brief: String,
}

/// A question, and what a system answered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnswerLine {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub gold: Option<String>,
    pub rounds: Vec<RoundLine>,
    pub answer: String,
    /// `null` where there is no gold.
    pub correct: Option<bool>,
    pub team_confidence: f64,
    pub rationale: String,
    /// The last round that ran: 0 when the panel agreed at once.
    pub rounds_run: u32,
    pub calls: u32,
    /// Whether the vote was tied and the first agent in panel order decided.
    pub tie: bool,
    /// Why the item has no answer; it counts as wrong, and a resumed run tries it again.
    pub error: Option<String>,
    pub prev: String,
    pub hash: String,
}
