//! The client of an endpoint: rate limits, retries, and fallbacks for parameters that a server does not support.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::forms::LearnedForms;
use self::limit::Limit;
use self::reply::ReplyError;
use self::server_error::ServerError;
use self::transport::{Failure, Transport};
use super::{Address, RemoteCompletion, RemoteError, RemoteOptions, RemoteRequest, Waiting};
use crate::hub::OfflineReason;
use crate::record::{FinishReason, Message, Usage};
use crate::text::ellipsis;

mod body;
#[cfg(test)]
mod fake_server;
mod forms;
mod image;
mod limit;
mod quotation;
mod reply;
mod retry;
mod server_error;
#[cfg(test)]
mod tests;
mod transport;

/// Whether this build can ask an endpoint at all.
pub const AVAILABLE: bool = true;

/// How often a waiting thread looks at its stop flag.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Characters of a server's message that an error shows.
const MESSAGE_CHARS: usize = 300;

/// A model at an endpoint. Many threads may ask it at once.
pub struct RemoteModel {
    address: Address,
    options: RemoteOptions,
    transport: Transport,
    limit: Limit,
    learned: LearnedForms,
    /// Whether it was said that its token counts cannot be.
    is_miscounting: AtomicBool,
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteModel({}, {:?})", self.address, self.options)
    }
}

/// What all attempts at one request share.
struct RequestState<'a> {
    seed: u64,
    /// Nothing that a server says of them is shown.
    messages: &'a [Message],
    stop: &'a AtomicBool,
    /// Made so far.
    attempts: u32,
}

impl RemoteModel {
    /// Prepares a client; nothing is sent yet.
    ///
    /// # Errors
    /// [`RemoteError::Forbidden`] when offline; [`RemoteError::Proxy`] for a proxy that cannot be used.
    pub fn open(address: &Address, options: RemoteOptions) -> Result<RemoteModel, RemoteError> {
        // A command that only looks at what is there sends nothing to it.
        if let Some(reason) = options.offline.filter(|reason| *reason != OfflineReason::Command) {
            return Err(RemoteError::Forbidden { address: address.clone(), reason });
        }
        Ok(RemoteModel {
            address: address.clone(),
            transport: Transport::new(&options, &address.base)
                .map_err(|problem| RemoteError::Proxy { address: address.clone(), problem })?,
            limit: Limit::new(options.max_in_flight, options.requests_per_minute),
            learned: LearnedForms::default(),
            is_miscounting: AtomicBool::new(false),
            options,
        })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether the endpoint lists the model, `None` where it has no list of models. Finds a dead endpoint, a wrong key or a misspelt model
    /// before a run begins.
    ///
    /// # Errors
    /// An endpoint that denies access or does not answer; one without a list of models is no error.
    pub fn look_up(&self, stop: &AtomicBool) -> Result<Option<bool>, RemoteError> {
        let mut state = RequestState { seed: 0, messages: &[], stop, attempts: 0 };
        let read = |value: &Value| Ok(reply::lists_model(value, &self.address.model));
        let found =
            self.send_with_retries(&self.address.models(), None, &mut state, read, |_| false)?;
        match found {
            Ok(is_listed) => Ok(is_listed),
            Err(error) if [404, 405, 501].contains(&error.status) => Ok(None),
            Err(error) => Err(self.to_remote_error(&error, None)),
        }
    }

    /// Asks for a completion and waits for it, with retries on rate limits, overload and lost connections. A parameter that the server
    /// rejects is sent in another form or left out; the form is remembered once a request with it succeeds.
    ///
    /// # Errors
    /// See [`RemoteError::concerns_item`]. [`RemoteError::Interrupted`] once `stop` is set and no request is in flight.
    pub fn complete(
        &self,
        request: &RemoteRequest,
        stop: &AtomicBool,
    ) -> Result<RemoteCompletion, RemoteError> {
        let started = Instant::now();
        let image = request.image.as_deref().map(image::url).transpose()?;
        let (seed, messages) = (request.seed, &*request.messages);
        let mut state = RequestState { seed, messages, stop, attempts: 0 };
        let mut forms = self.learned.forms();
        loop {
            let body = body::write(&self.address.model, request, image.as_deref(), forms)?;
            let next_forms = |error: &ServerError| forms.after_rejection(error, request);
            let answer = self.send_with_retries(
                &self.address.completions(),
                Some(&body),
                &mut state,
                reply::read,
                |error| next_forms(error).is_some(),
            )?;
            match answer {
                Ok(reply) => {
                    let mut notes = self.learned.learn(forms, &self.address);
                    if reply.is_miscounted && !self.is_miscounting.swap(true, Ordering::Relaxed) {
                        let address = &self.address;
                        notes.push(format!("{address} counts more tokens than there can be: such counts are left out"));
                    }
                    return Ok(RemoteCompletion {
                        text: reply.text,
                        finish_reason: reply.finish_reason,
                        usage: reply.usage,
                        is_constrained: forms.constrain(request),
                        not_sent: forms.not_sent(request),
                        answered_by: reply.answered_by,
                        elapsed_ms: started.elapsed().as_millis() as u64,
                        attempts: state.attempts,
                        notes,
                    });
                }
                Err(error) => match next_forms(&error) {
                    Some(next) => forms = next,
                    // The model was not asked: a refusal without words.
                    None if error.is_filter() => {
                        let message = self.message_of(&error, state.messages);
                        return Ok(RemoteCompletion {
                            text: String::new(),
                            finish_reason: FinishReason::Refusal,
                            usage: Usage::default(),
                            is_constrained: forms.constrain(request),
                            not_sent: forms.not_sent(request),
                            answered_by: None,
                            elapsed_ms: started.elapsed().as_millis() as u64,
                            attempts: state.attempts,
                            notes: vec![format!("{} withheld an answer: {message}", self.address)],
                        });
                    }
                    None => return Err(self.to_remote_error(&error, Some(request))),
                },
            }
        }
    }

    /// [`RemoteModel::complete`] on a thread of its own; the returned closure waits for it. A blocked read cannot be cancelled, but the
    /// wait ends soon after `stop` is set, with [`RemoteError::Interrupted`].
    pub fn send(self: Arc<Self>, request: RemoteRequest, stop: Arc<AtomicBool>) -> Waiting {
        let (sender, receiver) = channel();
        let is_stopped = stop.clone();
        let thread = thread::spawn(move || {
            // The receiver is gone where the wait was interrupted.
            let _ = sender.send(self.complete(&request, &stop));
        });
        Box::new(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                match receiver.recv_timeout(STOP_POLL_INTERVAL) {
                    Ok(completion) => return completion,
                    Err(RecvTimeoutError::Timeout) => {}
                    Err(RecvTimeoutError::Disconnected) => match thread.join() {
                        Err(panic) => resume_unwind(panic),
                        Ok(()) => break,
                    },
                }
            }
            Err(RemoteError::Interrupted)
        })
    }

    /// Sends until an answer comes or attempts run out. A server's error is returned without a retry where it is not transient or
    /// `is_final` says so.
    fn send_with_retries<T>(
        &self,
        url: &str,
        body: Option<&[u8]>,
        state: &mut RequestState<'_>,
        read: impl Fn(&Value) -> Result<T, ReplyError>,
        is_final: impl Fn(&ServerError) -> bool,
    ) -> Result<Result<T, ServerError>, RemoteError> {
        let address = || self.address.clone();
        let mut attempt = 1;
        loop {
            state.attempts += 1;
            let permit = self.limit.enter(state.stop).ok_or(RemoteError::Interrupted)?;
            let sent = self.transport.send(url, body);
            drop(permit);
            let (reason, retry_after) = match sent {
                Err(Failure::TooLong) => {
                    let most_bytes = self.options.most_bytes;
                    return Err(RemoteError::TooLong { address: address(), most_bytes });
                }
                Err(Failure::Lost(reason)) => (reason, None),
                Ok(answer) => match answer.read().and_then(|value| read(&value)) {
                    Ok(value) => return Ok(Ok(value)),
                    Err(ReplyError::Malformed(reason)) => (reason, answer.retry_after),
                    Err(ReplyError::ServerError(error)) => {
                        if is_final(&error) || !error.is_transient() {
                            return Ok(Err(error));
                        }
                        let message = self.message_of(&error, state.messages);
                        let reason = format!("HTTP {}: {message}", error.status);
                        (reason, answer.retry_after)
                    }
                },
            };
            let is_too_long = retry_after.is_some_and(|pause| pause > self.options.longest_pause);
            if attempt >= self.options.attempts || is_too_long {
                let attempts = state.attempts;
                return Err(RemoteError::Exhausted { address: address(), attempts, reason });
            }
            if let Some(pause) = retry_after {
                self.limit.hold_off(pause);
            }
            let backoff = retry::backoff(state.seed, attempt, self.options.first_pause);
            let pause = backoff.max(retry_after.unwrap_or_default());
            if !retry::sleep(pause, state.stop) {
                return Err(RemoteError::Interrupted);
            }
            attempt += 1;
        }
    }

    /// A server's message as errors show it: without the API key and without what was sent, both of which some servers repeat, and cut
    /// only then, so that no part of them is left at the cut.
    fn message_of(&self, error: &ServerError, sent: &[Message]) -> String {
        match quotation::without_quotations(&self.transport.redact(&error.message), sent) {
            message if message.is_empty() => "no reason given".to_owned(),
            message => ellipsis(&message, MESSAGE_CHARS),
        }
    }

    /// The error of a request that the server refused, naming the sampling parameter of `request` that it rejects, if it names one.
    fn to_remote_error(&self, error: &ServerError, request: Option<&RemoteRequest>) -> RemoteError {
        let (address, status) = (self.address.clone(), error.status);
        let messages = request.map_or(&[][..], |request| &request.messages);
        let message = self.message_of(error, messages);
        let mut sent = request.into_iter().flat_map(|request| request.sampling.sent());
        let is_rejected =
            |name: &&str| matches!(status, 400 | 422) && error.names_parameter(&[name]);
        if let Some(parameter) = sent.find(is_rejected) {
            return RemoteError::Sampling { address, parameter, status, message };
        }
        match (error.code.as_deref(), status) {
            (Some("model_not_found"), _) | (_, 300..=399 | 404 | 405 | 410 | 501) => {
                RemoteError::NotFound { address, status, message }
            }
            (_, 401..=403 | 429) => {
                let variable = self.options.key.as_ref().map(|key| key.variable.clone());
                RemoteError::Denied { address, status, message, variable }
            }
            _ => RemoteError::Rejected { address, status, message },
        }
    }
}
