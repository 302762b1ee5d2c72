//! What came back for a call, and how it was asked for, as the log keeps both.

use crate::engine::Sampling;
use crate::record::{AnsweredBy, CallLine, FinishReason, SamplingLine, Usage};

/// How a completion is asked for, as the log keeps it.
pub struct Asking {
    pub seed: u64,
    pub sampling: SamplingLine,
    pub request: String,
}

/// What came back for a call.
pub struct Answer {
    pub text: String,
    pub tokens: Vec<u32>,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    pub elapsed_ms: u64,
    pub answered_by: Option<AnsweredBy>,
}

impl Answer {
    /// As an equal request was answered.
    pub fn of(call: &CallLine) -> Answer {
        Answer {
            text: call.text.clone(),
            tokens: call.tokens.clone(),
            usage: call.usage,
            finish_reason: call.finish_reason,
            elapsed_ms: call.elapsed_ms,
            answered_by: call.answered_by.clone(),
        }
    }
}

pub fn sampling_record(sampling: &Sampling, max_tokens: usize, constrained: bool) -> SamplingLine {
    SamplingLine {
        temperature: Some(sampling.temperature),
        top_k: sampling.top_k,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repetition_penalty: sampling.repetition_penalty,
        max_tokens: Some(max_tokens),
        constrained,
    }
}
