//! The sampling parameters of a completion, and who answered.

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

/// The model that answered according to its endpoint, which may serve another one under the requested name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AnsweredBy {
    /// Often more specific than the requested name.
    pub model: Option<String>,
    /// OpenAI's `system_fingerprint`, of weights and software together.
    pub fingerprint: Option<String>,
}
