//! One line of `calls.jsonl`: a model call with all that fixes it and all that came back. Field order here is field order on disk.

use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{AnsweredBy, FinishReason, Message, SamplingLine, Usage};

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

/// How a record was read from a completion's text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Parse {
    /// The text was the record.
    Ok,
    /// The record was found after stripping fences, trailing commas or closing open brackets.
    Repaired,
    /// The text has another form than the one asked for; what was asked for was taken from its words.
    Fallback,
    /// The model declined: no answer was taken from its text.
    Refused,
    /// Nothing of what was asked for could be read.
    Unread,
}

impl Parse {
    pub const ALL: [Parse; 5] =
        [Parse::Ok, Parse::Repaired, Parse::Fallback, Parse::Refused, Parse::Unread];

    /// As logs and tables have it.
    pub fn name(self) -> &'static str {
        match self {
            Parse::Ok => "ok",
            Parse::Repaired => "repaired",
            Parse::Fallback => "fallback",
            Parse::Refused => "refused",
            Parse::Unread => "unread",
        }
    }

    /// [`Parse::Unread`] where nothing was read.
    pub fn if_read(self, is_read: bool) -> Parse {
        if is_read { self } else { Parse::Unread }
    }
}

/// Where a call's record keeps a letter that the item has not, which is no answer.
pub const NOT_AN_OPTION: &str = "not_an_option";

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
    /// What fixes the completion's bytes, as one hash: calls with equal ones have equal texts.
    pub request: String,
    /// Of an endpoint alone, where it says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub answered_by: Option<AnsweredBy>,
    pub messages: Vec<Message>,
    pub sampling: SamplingLine,
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

impl CallLine {
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

impl fmt::Display for CallKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dataset, run, item, agent, round, purpose, sample } = self;
        write!(
            f,
            "call {purpose} of {agent}, round {round}, sample {sample}, item {item} of {dataset}, run {run}"
        )
    }
}
