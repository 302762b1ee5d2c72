//! Why an engine could not answer: the request, its grammar, or the engine itself.

use std::any::Any;
use std::sync::OnceLock;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
use crate::ops::OpsError;

/// Why a request has no completion.
#[derive(Clone, Debug, Error, PartialEq)]
#[allow(missing_docs, reason = "what each means is its message")]
pub enum EngineError {
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error(
        "a prompt of {prompt} tokens and a completion of up to {max_tokens} exceed the context of {context} tokens"
    )]
    TooLong { prompt: usize, max_tokens: usize, context: usize },
    #[error(
        "a prompt of {prompt} tokens and a completion of up to {max_tokens} need {needed} pages of keys and values; the pool has {pages}"
    )]
    PoolTooSmall { prompt: usize, max_tokens: usize, needed: usize, pages: usize },
    #[error("token id {id} is beyond the model's {vocabulary} embeddings")]
    UnknownToken { id: u32, vocabulary: usize },
    #[error("max_tokens is 0, and no log-probabilities of the prompt are asked for")]
    NothingToGenerate,
    #[error("the engine has no room for log-probabilities of known tokens")]
    NoKnownLogprobs,
    #[error("a repetition penalty of {penalty} is not from 0.01 to 100")]
    Penalty { penalty: f32 },
    #[error(
        "the model {model} computed numbers that are not finite (NaN or infinity) at position {position}"
    )]
    NotFinite { model: String, position: usize },
    #[error("the grammar does not compile: {0}")]
    Grammar(String),
    #[error("the engine's thread cannot start: {0}")]
    Start(String),
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("the engine died: {reason}")]
    Died { reason: String },
}

/// Characters of a panic's text that are kept.
const PANIC_CHARS: usize = 300;

impl EngineError {
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
    let unknown = || EngineError::Died { reason: "its thread ended".to_owned() };
    failure.get().cloned().unwrap_or_else(unknown)
}

impl Diagnosis for EngineError {
    fn blame(&self) -> Blame {
        match self {
            EngineError::Start(_) | EngineError::Died { .. } => Blame::Machine,
            EngineError::Ops(error) => error.blame(),
            EngineError::NotFinite { .. } => Blame::Artefact,
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            EngineError::TooLong { .. } => {
                Some("shorten the item, lower max_tokens, or raise --context".to_owned())
            }
            EngineError::PoolTooSmall { .. } => Some(
                "lower max_tokens or --context, or give the pool more memory with --kv-tokens"
                    .to_owned(),
            ),
            EngineError::NotFinite { .. } => Some(
                "check the files with `wardround models verify`; where they are whole, --dtype f32 leaves more room"
                    .to_owned(),
            ),
            EngineError::Ops(error) => error.hint(),
            _ => None,
        }
    }
}
