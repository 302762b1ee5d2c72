//! One backbone's engine: a thread that turns token ids to token ids, many sequences a step.
//!
//! It knows no prompts. What a sequence's tokens are depends on its request alone: never on the batch, the order
//! of arrival, a preemption, or what the prefix index held.

mod block_pool;
pub mod constraint;
mod core;
mod draft;
mod latencies;
mod prefix;
mod request;
mod runner;
mod scheduler;
mod sequence;
mod stats;

use std::any::Any;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;

use thiserror::Error;

pub use constraint::Constraint;
pub use latencies::Latencies;
pub use request::{
    Completion, FinishReason, Request, Sampling, Stop, Ticket, TokenLogprobs, Usage,
};
pub use stats::{EngineStats, Work};

pub use crate::record::Grammar;

use self::core::Core;
use self::sequence::Sequence;
use crate::diagnosis::{Blame, Diagnosis};
use crate::model::Decoder;
use crate::ops::{Backend, OpsError, PAGE, StepLimits};
use crate::tokenizer::Tokenizer;

/// Sizes of an engine. None of them changes a completion.
#[derive(Clone, Copy, Debug)]
pub struct EngineOptions {
    /// Pages of the KV cache, of [`PAGE`] tokens each.
    pub pages: usize,
    /// Sequences a step, at most.
    pub max_batch: usize,
    /// Rows of prompts a step, at most.
    pub prefill_rows: usize,
    /// Tokens that a sequence may hold.
    pub context: usize,
    /// Tokens that a sequence may draft a step, at most.
    pub draft: usize,
}

impl EngineOptions {
    /// A step's rows are chunks of prompts, and of each decoding sequence the sampled, the forced and the drafted
    /// tokens; logits come from each sequence's last token and its draft.
    pub fn step_limits(&self) -> StepLimits {
        StepLimits {
            rows: self.prefill_rows + self.max_batch * scheduler::DECODE_ROWS,
            logit_rows: self.max_batch * (1 + self.draft.min(scheduler::DECODE_ROWS - 1)),
            positions: self.context,
        }
    }
}

#[derive(Clone, Debug, Error, PartialEq)]
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
    #[error("max_tokens is 0")]
    NothingToGenerate,
    #[error("the grammar does not compile: {0}")]
    Grammar(String),
    #[error("the engine's thread cannot start: {0}")]
    Start(String),
    #[error(transparent)]
    Ops(#[from] OpsError),
    #[error("the engine died: {reason}")]
    Died { reason: String },
}

impl EngineError {
    /// By a panic, of which only the text is kept.
    fn died(panic: &(dyn Any + Send)) -> EngineError {
        let text = panic
            .downcast_ref::<String>()
            .cloned()
            .or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        EngineError::Died { reason: text.unwrap_or_else(|| "its thread panicked".to_owned()) }
    }
}

impl Diagnosis for EngineError {
    fn blame(&self) -> Blame {
        match self {
            EngineError::Start(_) | EngineError::Died { .. } => Blame::Machine,
            EngineError::Ops(error) => error.blame(),
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
            EngineError::Ops(error) => error.hint(),
            _ => None,
        }
    }
}

/// A running engine. Dropping it ends its thread once the requests at hand are done.
pub struct Engine {
    inbox: Option<Sender<Sequence>>,
    thread: Option<JoinHandle<Result<EngineStats, EngineError>>>,
    /// Why the thread ended, once it did for an error.
    failure: Arc<OnceLock<EngineError>>,
    options: EngineOptions,
    vocabulary: usize,
    arrivals: std::sync::atomic::AtomicU64,
}

impl Engine {
    /// Starts a thread named `engine-{name}` around `decoder`. `eos_ids` end a grammar's text.
    ///
    /// # Errors
    /// When the thread or the grammar compiler cannot start, or the machine has no room.
    pub fn start<B: Backend>(
        name: &str,
        decoder: Decoder<B>,
        tokenizer: Arc<Tokenizer>,
        eos_ids: &[u32],
        ops: B,
        options: EngineOptions,
    ) -> Result<Engine, EngineError> {
        let vocabulary = decoder.config.vocab_size;
        let core = Core::new(decoder, tokenizer, eos_ids, ops, options)?;
        let (inbox, arrivals) = channel();
        let failure = Arc::new(OnceLock::new());
        let noted = failure.clone();
        let run = move || {
            let ended = core.run(&arrivals);
            if let Err(error) = &ended {
                let _ = noted.set(error.clone());
            }
            ended
        };
        let thread = std::thread::Builder::new()
            .name(format!("engine-{name}"))
            .spawn(run)
            .map_err(|error| EngineError::Start(error.to_string()))?;
        Ok(Engine {
            inbox: Some(inbox),
            thread: Some(thread),
            failure,
            options,
            vocabulary,
            arrivals: 0.into(),
        })
    }

    /// Hands a request to the engine.
    ///
    /// # Errors
    /// What can never run is refused here: an empty prompt, one beyond the context or the pool, an unknown id.
    pub fn submit(&self, request: Request) -> Result<Ticket, EngineError> {
        self.check(&request)?;
        let (events, receiver) = channel();
        let alive = Arc::new(());
        let age = self.arrivals.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let sequence = Sequence::new(age, request, events, Arc::downgrade(&alive));
        let failure = || failure_of(&self.failure);
        let inbox = self.inbox.as_ref().ok_or_else(failure)?;
        inbox.send(sequence).map_err(|_| failure())?;
        Ok(Ticket { events: receiver, failure: self.failure.clone(), _alive: alive })
    }

    /// Ends the engine once the requests at hand are done, and gives what it counted.
    ///
    /// # Errors
    /// When its thread died before, or its machine failed.
    pub fn finish(mut self) -> Result<EngineStats, EngineError> {
        self.inbox = None;
        match self.thread.take().map(JoinHandle::join) {
            Some(Ok(ended)) => ended,
            Some(Err(panic)) => Err(EngineError::died(panic.as_ref())),
            None => Err(failure_of(&self.failure)),
        }
    }

    fn check(&self, request: &Request) -> Result<(), EngineError> {
        let (prompt, max_tokens) = (request.tokens.len(), request.max_tokens);
        if prompt == 0 {
            return Err(EngineError::EmptyPrompt);
        }
        if max_tokens == 0 {
            return Err(EngineError::NothingToGenerate);
        }
        if prompt + max_tokens > self.options.context {
            return Err(EngineError::TooLong { prompt, max_tokens, context: self.options.context });
        }
        let needed = (prompt + max_tokens).div_ceil(PAGE);
        if needed > self.options.pages {
            return Err(EngineError::PoolTooSmall {
                prompt,
                max_tokens,
                needed,
                pages: self.options.pages,
            });
        }
        match request.tokens.iter().find(|id| **id as usize >= self.vocabulary) {
            Some(&id) => Err(EngineError::UnknownToken { id, vocabulary: self.vocabulary }),
            None => Ok(()),
        }
    }
}

/// Why an engine that no longer answers ended.
fn failure_of(failure: &OnceLock<EngineError>) -> EngineError {
    let unknown = || EngineError::Died { reason: "its thread ended".to_owned() };
    failure.get().cloned().unwrap_or_else(unknown)
}

impl Drop for Engine {
    fn drop(&mut self) {
        self.inbox = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
