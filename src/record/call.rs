//! One line of `calls.jsonl`: a model call with its whole request and response. Fields are written in the order of the struct.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{FinishReason, Message, Reply, Usage};

/// The identity of a call within a run directory: calls with equal keys are the same call. Its random seed is derived from the run's seed
/// and this key.
///
/// `round` 0 is the initial one; `sample` counts repeated completions of one prompt (self-consistency, no-debate).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct CallKey {
    pub dataset: String,
    pub run: u32,
    pub item: String,
    pub agent: String,
    pub round: u32,
    pub purpose: String,
    pub sample: u32,
}

/// How a record was parsed from a completion's text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Parse {
    /// The text was the record.
    Ok,
    /// The record was parsed after stripping code fences or trailing commas, or closing open brackets.
    Repaired,
    /// The text is not in the requested format; the values were extracted from its words.
    Fallback,
    /// The model refused: no answer was taken from its text.
    Refused,
    /// None of the requested values could be parsed.
    #[default]
    Unread,
}

impl Parse {
    /// This value, or [`Parse::Unread`] if nothing was read.
    pub fn if_read(self, is_read: bool) -> Parse {
        if is_read { self } else { Parse::Unread }
    }
}

/// The role of a call in answering its item; the diagnostics of MED-MAD B.7 compare calls of equal stages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Stage {
    /// An agent's own answer, before it has seen another's.
    #[default]
    Initial,
    /// An agent's answer in a round of interaction.
    Round,
    /// The answer of the agent that decides for all.
    Final,
    /// A call that gives no answer: a plan, a recruitment, a critique, a synthesis.
    Aside,
}

/// The sampling parameters of a completion. A parameter that is off is `null`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct SamplingLine {
    /// 0 means greedy. Of a remote member, whose provider decides, every parameter is `null`.
    pub temperature: Option<f32>,
    pub top_k: Option<u32>,
    pub top_p: Option<f32>,
    pub min_p: Option<f32>,
    pub repetition_penalty: Option<f32>,
    pub max_tokens: Option<usize>,
    /// Whether decoding was constrained by a grammar.
    pub constrained: bool,
    /// What an endpoint was not sent although a call has it, because the settings leave it to the provider or the endpoint rejects it:
    /// `seed`, `enable_thinking`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_sent: Vec<String>,
}

/// The model that answered according to its endpoint, which may serve another one under the requested name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct AnsweredBy {
    /// Often more specific than the requested name.
    pub model: Option<String>,
    /// OpenAI's `system_fingerprint`, of weights and software together.
    pub fingerprint: Option<String>,
}

/// One line of `calls.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct CallLine {
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
    /// The hash of everything that determines the completion: calls with equal hashes have equal texts.
    pub request: String,
    /// Only of calls to an endpoint that states it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    pub messages: Vec<Message>,
    pub sampling: SamplingLine,
    /// Below 2^53, so that every JSON reader keeps it exactly.
    pub seed: u64,
    pub text: String,
    pub tokens: Vec<u32>,
    /// What was read of `text`.
    pub record: Reply,
    pub parse: Parse,
    #[cfg_attr(test, schemars(with = "std::collections::BTreeMap<String, u64>"))]
    pub usage: Usage,
    #[cfg_attr(test, schemars(with = "String"))]
    pub finish_reason: FinishReason,
    pub elapsed_ms: u64,
    pub prev: String,
    pub hash: String,
}

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dataset, run, item, agent, round, purpose, sample } = self;
        write!(
            f,
            "call {purpose} of {agent}, round {round}, sample {sample}, item {item} of {dataset}, run {run}"
        )
    }
}
