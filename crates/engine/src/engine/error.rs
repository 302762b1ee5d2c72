//! Why an engine could not answer: the request, its grammar, or the engine itself.

use std::any::Any;
use std::sync::OnceLock;

use thiserror::Error;

use crate::fault::faults;
use crate::ops::OpsError;

faults! {
    /// Why a request has no completion.
    #[derive(Clone, Debug, Error, PartialEq)]
    pub enum EngineError {
        #[error("the prompt is empty")]
        EmptyPrompt => Usage;
        #[error(
            "a prompt of {prompt} tokens and a completion of up to {max_tokens} exceed the context of {context} tokens"
        )]
        TooLong { prompt: usize, max_tokens: usize, context: usize } => Usage,
            "shorten the item, lower max_tokens, or raise --context";
        #[error(
            "a prompt of {prompt} tokens and a completion of up to {max_tokens} need {needed} pages of the KV cache, which has {pages}"
        )]
        PoolTooSmall { prompt: usize, max_tokens: usize, needed: usize, pages: usize } => Usage,
            "lower max_tokens or --context, or give the cache more memory with --kv-tokens";
        #[error("token id {id} is beyond the model's {vocabulary} embeddings")]
        UnknownToken { id: u32, vocabulary: usize } => Usage;
        #[error("max_tokens is 0, and no log-probabilities of the prompt are asked for")]
        NothingToGenerate => Usage;
        #[error("the engine has no room for log-probabilities of known tokens")]
        NoKnownLogprobs => Usage;
        #[error("a repetition penalty of {penalty} is not from 0.01 to 100")]
        Penalty { penalty: f32 } => Usage;
        #[error(
            "the model {model} computed numbers that are not finite (NaN or infinity) at position {position}"
        )]
        NotFinite { model: String, position: usize } => Artefact,
            "check the files with `wardround models verify`; where they are whole, --dtype f32 leaves more room";
        #[error("the grammar does not compile: {0}")]
        Grammar(problem: String) => Usage;
        #[error("the engine's thread cannot start: {0}")]
        Start(problem: String) => Machine;
        #[error(transparent)]
        Ops(error: #[from] OpsError) => error.blame(), error.hint();
        #[error("the engine died: {reason}")]
        Died { reason: String } => Machine;
    }
}

const PANIC_CHARS: usize = 300;

impl EngineError {
    pub(super) fn not_finite(model: &str, position: usize) -> EngineError {
        EngineError::NotFinite { model: model.to_owned(), position }
    }

    /// By a panic, of which only the beginning of the text is kept.
    pub(super) fn died(panic: &(dyn Any + Send)) -> EngineError {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        let reason = text.unwrap_or_else(|| "its thread panicked".to_owned());
        let first = reason.lines().next().unwrap_or_default();
        EngineError::Died { reason: first.chars().take(PANIC_CHARS).collect() }
    }
}

/// Why an engine that no longer answers ended.
pub(super) fn failure_of(failure: &OnceLock<EngineError>) -> EngineError {
    failure.get().cloned().unwrap_or_else(lost)
}

/// What nobody has said otherwise.
pub(super) fn lost() -> EngineError {
    EngineError::Died { reason: "its thread ended".to_owned() }
}
