//! The answer to a call, with the parameters of its request, as the log keeps both.

use crate::calls::{Elsewhere, Kept};
use crate::engine::Sampling;
use crate::record::{AnsweredBy, CallLine, FinishReason, SamplingLine, Usage};

pub struct Answer {
    pub seed: u64,
    pub sampling: SamplingLine,
    /// The hash of everything that determines the answer; empty for a remote endpoint, whose answers are not deterministic.
    pub request: String,
    pub text: String,
    pub tokens: Vec<u32>,
    pub usage: Usage,
    pub finish_reason: FinishReason,
    pub elapsed_ms: u64,
    pub answered_by: Option<AnsweredBy>,
}

impl Answer {
    /// As the store of calls keeps it.
    pub fn kept(&self, elsewhere: Option<Elsewhere>) -> Kept {
        let (text, tokens) = (self.text.clone(), self.tokens.clone());
        let Answer { finish_reason, usage, elapsed_ms, .. } = *self;
        Kept { text, tokens, finish_reason, usage, elapsed_ms, elsewhere }
    }

    /// What was kept, with the parameters of the request.
    pub fn of_kept(kept: Kept, seed: u64, sampling: SamplingLine, request: String) -> Answer {
        let Kept { text, tokens, finish_reason, usage, elapsed_ms, elsewhere } = kept;
        let answered_by = elsewhere.and_then(|elsewhere| elsewhere.answered_by);
        Answer {
            seed,
            sampling,
            request,
            text,
            tokens,
            usage,
            finish_reason,
            elapsed_ms,
            answered_by,
        }
    }
}

impl From<&CallLine> for Answer {
    fn from(call: &CallLine) -> Answer {
        Answer {
            seed: call.seed,
            sampling: call.sampling.clone(),
            request: call.request.clone(),
            text: call.text.clone(),
            tokens: call.tokens.clone(),
            usage: call.usage,
            finish_reason: call.finish_reason,
            elapsed_ms: call.elapsed_ms,
            answered_by: call.answered_by.clone(),
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
