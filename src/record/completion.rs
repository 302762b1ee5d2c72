//! The sampling parameters of a completion, its token usage and its finish reason.

use serde::{Deserialize, Serialize};

/// The sampling parameters of a completion. A parameter that is off is `null`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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

/// The token counts of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: usize,
    /// Tokens of the prompt that were found in the prefix cache.
    pub cached_tokens: usize,
    pub completion_tokens: usize,
    /// Tokens of the completion that the grammar forced, so that they were not sampled.
    pub forced_tokens: usize,
}

impl Usage {
    /// The sum of both.
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
    /// The grammar allowed no further token, or exceeded its limits.
    Constraint,
    /// The request's handle was dropped.
    Cancelled,
    /// The model refused, according to its endpoint.
    Refusal,
}

/// The model that answered according to its endpoint, which may serve another one under the requested name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnsweredBy {
    /// Often more specific than the requested name.
    pub model: Option<String>,
    /// OpenAI's `system_fingerprint`, of weights and software together.
    pub fingerprint: Option<String>,
}
