//! What is asked of an engine, and what comes back.

use std::ops::RangeInclusive;

use super::constraint::Constraint;
use super::usage::{FinishReason, Usage};
use super::{EngineError, EngineOptions};
use crate::ops::PAGE;
pub use crate::ops::sampling::{Sampling, TokenLogprobs};

/// Repetition penalties with which a logit stays a number.
pub const PENALTIES: RangeInclusive<f32> = 0.01..=100.0;

#[derive(Clone, Debug, Default)]
pub struct Request {
    pub tokens: Vec<u32>,
    pub sampling: Sampling,
    /// With a token's position, all that its draw depends on.
    pub seed: u64,
    pub constraint: Option<Constraint>,
    pub stop: Stop,
    /// 0 only together with `prompt_logprobs`.
    pub max_tokens: usize,
    /// Added to the logits of these tokens before each draw.
    pub logit_bias: Vec<(u32, f32)>,
    /// Tokens before which neither a stop id nor a stop string ends the completion. A grammar may end it earlier.
    pub min_tokens: usize,
    /// How many of the likeliest tokens to give beside each token of the completion; `None`: no log-probabilities.
    pub logprobs: Option<usize>,
    /// Whether tokens that a grammar dictates get log-probabilities too, where `logprobs` asks for them.
    pub forced_logprobs: bool,
    /// The same as `logprobs` of the prompt's tokens. They are all computed: nothing is taken from the prefix index.
    pub prompt_logprobs: Option<usize>,
    /// The tokens that the completion is said to have. They are drafted instead of what the prompt suggests, so that a completion which is
    /// what it is said to be costs hardly more than a prompt. It has no effect on the completion.
    pub expected: Vec<u32>,
    /// Whose pages of keys and values may be found again: requests of one salt share them, and with no other. It has no
    /// effect on the completion.
    pub salt: Option<[u8; 16]>,
    /// Who asks: callers take turns. It has no effect on the completion.
    pub caller: u64,
    /// Whether the text is also given piece by piece, as it comes.
    pub pieces: bool,
}

impl Request {
    /// Refuses what can never run.
    pub(super) fn check(
        &self,
        options: &EngineOptions,
        vocabulary: usize,
    ) -> Result<(), EngineError> {
        let (prompt, max_tokens) = (self.tokens.len(), self.max_tokens);
        if prompt == 0 {
            return Err(EngineError::EmptyPrompt);
        }
        if max_tokens == 0 && self.prompt_logprobs.is_none() {
            return Err(EngineError::NothingToGenerate);
        }
        let scores_known = self.prompt_logprobs.is_some() || self.forced_logprobs;
        if scores_known && options.known_logit_rows == 0 {
            return Err(EngineError::NoKnownLogprobs);
        }
        if prompt + max_tokens > options.context {
            return Err(EngineError::TooLong { prompt, max_tokens, context: options.context });
        }
        let needed = (prompt + max_tokens).div_ceil(PAGE);
        if needed > options.pages {
            return Err(EngineError::PoolTooSmall {
                prompt,
                max_tokens,
                needed,
                pages: options.pages,
            });
        }
        if let Some(penalty) = self.sampling.penalty().filter(|one| !PENALTIES.contains(one)) {
            return Err(EngineError::Penalty { penalty });
        }
        let biased = self.logit_bias.iter().map(|(id, _)| *id);
        let mut named = self.tokens.iter().copied().chain(biased);
        match named.find(|id| *id as usize >= vocabulary) {
            Some(id) => Err(EngineError::UnknownToken { id, vocabulary }),
            None => Ok(()),
        }
    }
}

/// What ends a completion, beside its length. A stop is no part of the text.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    /// Tokens that end it anywhere.
    pub ids: Vec<u32>,
    pub strings: Vec<String>,
    /// The token after which strings begin to count, as a grammar's `after`: a model thinks before it answers.
    /// `None`: from the start.
    pub after: Option<u32>,
}

/// A finished completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// With the stop id that ended it, if one did.
    pub tokens: Vec<u32>,
    /// Without control tokens; bytes that are no UTF-8 become U+FFFD.
    pub text: String,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    /// Why the grammar could not go on, where the finish reason is `Constraint`.
    pub problem: Option<String>,
    /// One a token where asked for; `None` for a forced token whose log-probabilities were not.
    pub logprobs: Vec<Option<TokenLogprobs>>,
    /// One a token of the prompt where asked for; `None` for the first, which nothing stands before.
    pub prompt_logprobs: Vec<Option<TokenLogprobs>>,
    /// How often it was preempted; this has no effect on the tokens.
    pub preemptions: usize,
}
