//! The sizes of an engine. None of them changes a completion.

use super::scheduler::DECODE_ROWS;
use crate::ops::StepLimits;

#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Pages of the KV cache, of [`crate::ops::PAGE`] tokens each.
    pub pages: usize,
    /// Sequences a step, at most.
    pub max_batch: usize,
    /// Rows of prompts a step, at most.
    pub prefill_rows: usize,
    /// Tokens that a sequence may hold.
    pub context: usize,
    /// Tokens that a sequence may draft a step, at most.
    pub draft: usize,
    /// Rows of known tokens, of prompts or dictated by grammars, that may give log-probabilities a step. 0: requests that
    /// ask for any are refused. See [`crate::ops::Machine::known_logit_rows`].
    pub known_logit_rows: usize,
    /// States of recurrent layers, where a model has some: of the sequences of a full batch at least, and what is left is kept for prompts
    /// that begin as others did.
    pub slots: usize,
    /// Whether the memory of the pages is taken at the start, instead of as each is first used.
    pub pages_at_start: bool,
}

impl EngineOptions {
    /// A step's rows are chunks of prompts, and of each decoding sequence the sampled, the forced and the drafted
    /// tokens; logits come from each sequence's last token and its draft, and from known tokens.
    pub fn step_limits(&self) -> StepLimits {
        StepLimits {
            rows: self.prefill_rows + self.max_batch * DECODE_ROWS,
            logit_rows: self.max_batch * (1 + self.draft.min(DECODE_ROWS - 1))
                + self.known_logit_rows,
            positions: self.context,
        }
    }
}
