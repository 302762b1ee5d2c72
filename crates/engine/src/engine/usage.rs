//! How many tokens a completion took, and why it ended.

use serde::{Deserialize, Serialize};

/// The token counts of one call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    pub prompt_tokens: usize,
    /// Tokens of the prompt that were found in the prefix cache.
    pub cached_tokens: usize,
    /// Tokens of the completion, those that ended it too.
    pub completion_tokens: usize,
    /// Tokens of the completion that the grammar forced, so that they were not sampled.
    pub forced_tokens: usize,
}

impl Usage {
    /// The sum of both. Logs and endpoints may tell any number: the largest one stands for more.
    pub fn and(self, other: Usage) -> Usage {
        Usage {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            forced_tokens: self.forced_tokens.saturating_add(other.forced_tokens),
        }
    }

    pub fn total(self) -> usize {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

/// Why a completion ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// An end-of-turn token, a stop string, or a completed grammar.
    #[default]
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
