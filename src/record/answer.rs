//! A question's line in `items.jsonl`: the system's answer, and every round that led to it.

use serde::{Deserialize, Serialize};

use super::Stage;

/// The answers of one round and their vote. Every vector but `labels` has one entry for each of `agents`, or none.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct RoundLine {
    pub round: u32,
    pub stage: Stage,
    /// The agents that answered, in the system's order; an agent that was asked several times is listed several times.
    pub agents: Vec<String>,
    /// The agent behind Doctor A, Doctor B, … in this round's brief; empty in round 0, which has none.
    pub labels: Vec<String>,
    /// Normalised letters; empty where none was found.
    pub answers: Vec<String>,
    /// Empty where the system asks for none.
    pub confidences: Vec<f64>,
    /// The weight of each answer in the vote; for MED-MAD the recalibrated confidence (B.8).
    pub weights: Vec<f64>,
    /// The result of the vote over this round's answers.
    pub aggregate: String,
    /// The text about the other agents' answers that every agent was shown in this round; empty in round 0. Where they were shown different
    /// ones, each of those, in panel order, with a line `----` between two.
    pub brief: String,
}

/// A question and the system's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AnswerLine {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub gold: Option<String>,
    /// Of a question without options, which earlier versions asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    pub rounds: Vec<RoundLine>,
    /// Of such a question: the agents' answers, which the letters of its rounds stand for from A on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub options: Vec<String>,
    /// A letter; of a question without options, a text. Empty where there is none.
    pub answer: String,
    /// `null` where there is no gold.
    pub correct: Option<bool>,
    /// Of the agents that gave the answer; `null` without one. Earlier versions stated 0, or a mean of all.
    pub team_confidence: Option<f64>,
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

impl AnswerLine {
    /// The answer as its rounds name it, a letter; empty without an answer.
    pub fn letter(&self) -> String {
        if self.options.is_empty() {
            return self.answer.clone();
        }
        let mut options = ('A'..).zip(&self.options);
        let own = options.find(|(_, option)| **option == self.answer);
        own.map(|(letter, _)| letter.to_string()).unwrap_or_default()
    }

    /// The team's confidence in its answer; `None` without an answer, and in a system that asks its agents for no confidence.
    pub fn stated_confidence(&self) -> Option<f64> {
        let is_asked = self.rounds.iter().any(|round| !round.confidences.is_empty());
        let is_answered = self.error.is_none() && !self.answer.is_empty();
        self.team_confidence.filter(|_| is_asked && is_answered)
    }
}
