//! How a completion was asked for, what it cost and why it ended.

use serde::{Deserialize, Serialize};

/// How a completion was decoded. A field that is off is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SamplingLine {
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

impl Usage {
    /// Of two calls together.
    pub fn and(self, other: Usage) -> Usage {
        Usage {
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            cached_tokens: self.cached_tokens + other.cached_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            forced_tokens: self.forced_tokens + other.forced_tokens,
        }
    }
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
    /// The model declined, as its endpoint says.
    Refusal,
}

/// Who an endpoint says answered: its models change under the name that was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnsweredBy {
    /// Often more exact than the name that was asked for.
    pub model: Option<String>,
    /// OpenAI's `system_fingerprint`: weights and software together.
    pub fingerprint: Option<String>,
}
