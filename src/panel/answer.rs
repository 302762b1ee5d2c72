//! The answer to a call, with the parameters of its request, as the log keeps both.

use crate::calls::Kept;
use crate::engine::Sampling;
use crate::record::{CallLine, SamplingLine};

pub struct Answer {
    pub seed: u64,
    pub sampling: SamplingLine,
    /// The hash of everything that determines the answer; empty for a remote endpoint, whose answers are not deterministic.
    pub request: String,
    /// As the store of calls keeps it.
    pub said: Kept,
}

/// Without what an endpoint said beside its completion, which stays in the line.
impl From<&CallLine> for Answer {
    fn from(call: &CallLine) -> Answer {
        Answer {
            seed: call.seed,
            sampling: call.sampling.clone(),
            request: call.request.clone(),
            said: Kept {
                text: call.text.clone(),
                tokens: call.tokens.clone(),
                finish_reason: call.finish_reason,
                usage: call.usage,
                elapsed_ms: call.elapsed_ms,
                elsewhere: None,
            },
        }
    }
}

pub fn sampling_line(sampling: &Sampling, max_tokens: usize, constrained: bool) -> SamplingLine {
    SamplingLine {
        temperature: Some(sampling.temperature),
        top_k: sampling.top_k,
        top_p: sampling.top_p,
        min_p: sampling.min_p,
        repetition_penalty: sampling.repetition_penalty,
        max_tokens: Some(max_tokens),
        constrained,
        not_sent: Vec::new(),
    }
}
