//! What is asked of an engine, and what comes back.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

pub use crate::record::{FinishReason, Usage};

use super::constraint::Constraint;
use super::{EngineError, failure_of};
pub use crate::ops::sampling::{Sampling, TokenLogprobs};

/// One completion to make.
#[derive(Clone, Debug, Default)]
pub struct Request {
    pub tokens: Vec<u32>,
    pub sampling: Sampling,
    /// With a token's position, all that its draw depends on.
    pub seed: u64,
    pub constraint: Option<Constraint>,
    pub stop: Stop,
    pub max_tokens: usize,
    /// How many of the likeliest tokens to give beside each sampled one; `None`: no log-probabilities.
    pub logprobs: Option<usize>,
    /// Whether the ticket also yields the text piece by piece.
    pub pieces: bool,
}

/// What ends a completion, beside its length. A stop is no part of the text.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    pub ids: Vec<u32>,
    pub strings: Vec<String>,
}

/// A finished completion.
#[derive(Clone, Debug, PartialEq)]
pub struct Completion {
    /// With the stop id that ended it, if one did.
    pub tokens: Vec<u32>,
    pub text: String,
    pub finish_reason: FinishReason,
    pub usage: Usage,
    /// One a token where asked for; `None` for a forced token, which no logits were computed for.
    pub logprobs: Vec<Option<TokenLogprobs>>,
    /// How often it was preempted; this has no effect on the tokens.
    pub preemptions: usize,
}

/// What an engine sends to a ticket.
#[derive(Debug)]
pub(super) enum Event {
    Piece(String),
    Done(Result<Completion, EngineError>),
}

/// A claim on a completion. Dropping it cancels the request.
#[derive(Debug)]
pub struct Ticket {
    pub(super) events: Receiver<Event>,
    pub(super) failure: Arc<OnceLock<EngineError>>,
    /// The engine holds a weak reference: when this goes, it knows.
    pub(super) _alive: Arc<()>,
}

impl Ticket {
    /// Waits for the completion; `on_piece` sees the text as it comes, if the request asked for pieces.
    ///
    /// # Errors
    /// What the engine refused the request for, or that it died.
    pub fn wait_with(self, mut on_piece: impl FnMut(&str)) -> Result<Completion, EngineError> {
        loop {
            match self.events.recv() {
                Ok(Event::Piece(text)) => on_piece(&text),
                Ok(Event::Done(result)) => return result,
                Err(_) => return Err(failure_of(&self.failure)),
            }
        }
    }

    /// Waits for the completion while `wanted` says so; `None` once it does not, and the request is cancelled.
    pub fn wait_while(self, wanted: impl Fn() -> bool) -> Option<Result<Completion, EngineError>> {
        const PATIENCE: Duration = Duration::from_millis(100);
        while wanted() {
            match self.events.recv_timeout(PATIENCE) {
                Ok(Event::Done(result)) => return Some(result),
                Ok(Event::Piece(_)) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Some(Err(failure_of(&self.failure)));
                }
            }
        }
        None
    }

    /// Waits for the completion.
    ///
    /// # Errors
    /// As [`Ticket::wait_with`].
    pub fn wait(self) -> Result<Completion, EngineError> {
        self.wait_with(|_| {})
    }
}
