//! How a call was made, and the text that came of it: what every card ends with.

use serde::Serialize;

use crate::record::{CallLine, FinishReason, Parse};

#[derive(Serialize)]
pub struct Made<'a> {
    purpose: &'a str,
    sample: u32,
    parse: Parse,
    cut_short: Option<&'static str>,
    raw: &'a str,
    seed: u64,
    elapsed_ms: u64,
    prompt_tokens: usize,
    cached_tokens: usize,
    completion_tokens: usize,
    forced_tokens: usize,
    max_tokens: Option<usize>,
    constrained: bool,
    prompt: usize,
}

impl<'a> Made<'a> {
    /// `prompt` is the number of the call's prompt in the appendix.
    pub fn new(call: &'a CallLine, prompt: usize) -> Made<'a> {
        Made {
            purpose: &call.purpose,
            sample: call.sample,
            parse: call.parse,
            cut_short: cut_short(call.finish_reason),
            raw: &call.text,
            seed: call.seed,
            elapsed_ms: call.elapsed_ms,
            prompt_tokens: call.usage.prompt_tokens,
            cached_tokens: call.usage.cached_tokens,
            completion_tokens: call.usage.completion_tokens,
            forced_tokens: call.usage.forced_tokens,
            max_tokens: call.sampling.max_tokens,
            constrained: call.sampling.constrained,
            prompt,
        }
    }
}

/// How a completion ended, where it did not end by itself.
fn cut_short(reason: FinishReason) -> Option<&'static str> {
    match reason {
        FinishReason::Stop => None,
        FinishReason::Length => Some("cut at the token limit"),
        FinishReason::Constraint => Some("ended by the grammar"),
        FinishReason::Cancelled => Some("cancelled"),
    }
}
