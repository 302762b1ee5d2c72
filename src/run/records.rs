//! The lines of a run directory: one model call, one finished item. Field order here is field order on disk.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What names a call: equal keys mean the same call, and the call's seed derives from nothing else.
///
/// `round` 0 is the initial one; `sample` counts repeated draws of one prompt (self-consistency, no-debate).
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallKey {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub agent: String,
    pub round: u32,
    pub purpose: String,
    pub sample: u32,
}

/// One message of a chat, as it was given to the template.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    pub role: String,
    pub content: String,
}

/// How a completion was decoded. A field that is off is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingRecord {
    /// 0 means greedy. A remote member decodes as its provider pleases: everything is `null`.
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub max_tokens: Option<usize>,
    /// Whether a grammar constrained the completion.
    pub constrained: bool,
}

/// How a record was read from a completion's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parse {
    /// The text was the record.
    Ok,
    /// The record was found after stripping fences, trailing commas or closing open brackets.
    Repaired,
    /// No record was found; the answer alone was taken from the text.
    Fallback,
}

/// Tokens of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: usize,
    /// Of the prompt, found in the prefix index.
    pub cached_tokens: usize,
    pub completion_tokens: usize,
    /// Of the completion, dictated by the constraint and never sampled.
    pub forced_tokens: usize,
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end-of-turn token, a stop string, or a completed grammar.
    Stop,
    /// `max_tokens` was reached.
    Length,
    /// The grammar could not go on (dead state, exceeded limits).
    Constraint,
    /// The ticket was dropped.
    Cancelled,
}

/// What a call is to the item: the diagnostics of MED-MAD B.7 compare like with like by it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// An agent's own answer, before it has seen another's.
    Initial,
    /// An agent's answer in a round of interaction.
    Round,
    /// The answer of whoever decides for all.
    Final,
    /// Whatever gives no answer: a plan, a recruitment, a critique, a synthesis.
    Aside,
}

/// One line of `calls.jsonl`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CallRecord {
    pub seq: u64,
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub agent: String,
    pub round: u32,
    pub purpose: String,
    pub sample: u32,
    pub stage: Stage,
    pub backbone: String,
    /// What fixes the completion's bytes, as one hash: calls with equal ones have equal texts.
    pub request: String,
    pub messages: Vec<Message>,
    pub sampling: SamplingRecord,
    /// Below 2^53, so that every JSON reader keeps it exactly.
    pub seed: u64,
    pub text: String,
    pub tokens: Vec<u32>,
    pub record: Value,
    pub parse: Parse,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    pub elapsed_ms: u64,
    pub prev: String,
    pub hash: String,
}

impl CallRecord {
    pub fn key(&self) -> CallKey {
        CallKey {
            dataset: self.dataset.clone(),
            run: self.run,
            item: self.item.clone(),
            agent: self.agent.clone(),
            round: self.round,
            purpose: self.purpose.clone(),
            sample: self.sample,
        }
    }
}

/// What one round of answers came to. Vectors run over `agents`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoundRecord {
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

/// One line of `items.jsonl` of a multiple-choice system.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ItemRecord {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub gold: Option<String>,
    pub rounds: Vec<RoundRecord>,
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
