//! The client of an endpoint: rate limits, retries, and fallbacks for parameters that a server does not support.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use self::body::{Forms, LearnedForms};
use self::failure::{Failure, ServerError};
use self::limit::{Limit, backoff};
use self::transport::{Answer, Transport};
use super::{Address, RemoteCompletion, RemoteError, RemoteOptions, RemoteRequest, Waiting};
use crate::calls::{Elsewhere, Kept};
use crate::hub::OfflineReason;
use crate::record::AnsweredBy;
use crate::text::ellipsis;

mod body;
mod failure;
#[cfg(test)]
mod fake_server;
mod image;
mod limit;
mod quotation;
mod reply;
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
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteModel({}, {:?})", self.address, self.options)
    }
}

/// What was read, in which forms it was asked for, and the attempts at it.
struct Answered<T> {
    read: T,
    forms: Forms,
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
        match self.ask(&self.address.models(), None, stop, Answer::json) {
            Ok(answered) => Ok(reply::lists_model(&answered.read, &self.address.model)),
            Err(RemoteError::NotFound { status: 404 | 405 | 501, .. }) => Ok(None),
            Err(error) => Err(error),
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
        let url = self.address.completions();
        let Answered { read: reply, forms, attempts } =
            self.ask(&url, Some(request), stop, reply::read)?;
        let address = &self.address;
        let notes = match &reply.withheld {
            None => self.learned.learn(forms, address),
            Some(error) => {
                let message = self.shown(&error.message, Some(request));
                vec![format!("{address} withheld an answer: {message}")]
            }
        };
        let redact = |text| self.transport.redact_answer(text);
        let elsewhere = Elsewhere {
            answered_by: reply.answered_by.map(|AnsweredBy { model, fingerprint }| AnsweredBy {
                model: model.map(redact),
                fingerprint: fingerprint.map(redact),
            }),
            constrained: forms.constrain(request),
            not_sent: forms.not_sent(request),
        };
        let said = Kept {
            text: redact(reply.text),
            tokens: Vec::new(),
            finish_reason: reply.finish_reason,
            usage: reply.usage,
            elapsed_ms: started.elapsed().as_millis() as u64,
            elsewhere: Some(elsewhere),
        };
        Ok(RemoteCompletion { said, attempts, notes })
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

    /// Sends `request`, or asks for what lies at `url`, until an answer comes or attempts run out. A parameter that the server rejects
    /// begins them anew, in its next form.
    fn ask<T>(
        &self,
        url: &str,
        request: Option<&RemoteRequest>,
        stop: &AtomicBool,
        read: impl Fn(&Answer) -> Result<T, Failure>,
    ) -> Result<Answered<T>, RemoteError> {
        let address = || self.address.clone();
        let image = request.and_then(|request| request.image.as_deref());
        let image = image.map(image::url).transpose()?;
        let mut forms = self.learned.forms();
        let (mut attempts, mut in_these_forms, mut earliest) = (0, 0, Instant::now());
        loop {
            let write = |request| forms.write(&self.address.model, request, image.as_deref());
            let body = request.map(write);
            (attempts, in_these_forms) = (attempts + 1, in_these_forms + 1);
            let permit = self.limit.enter(earliest, stop).ok_or(RemoteError::Interrupted)?;
            let answer = self.transport.send(url, body.as_deref());
            drop(permit);
            let retry_after = answer.as_ref().ok().and_then(|answer| answer.retry_after);
            let reason = match answer.and_then(|answer| read(&answer)) {
                Ok(read) => return Ok(Answered { read, forms, attempts }),
                Err(Failure::TooLong) => {
                    let most_bytes = self.options.most_bytes;
                    return Err(RemoteError::TooLong { address: address(), most_bytes });
                }
                Err(Failure::Lost(reason)) => self.shown(&reason, request),
                Err(Failure::Refused(error)) => {
                    let next = request.and_then(|request| forms.after_rejection(&error, request));
                    if let Some(next) = next {
                        (forms, in_these_forms) = (next, 0);
                        continue;
                    }
                    if !error.is_transient() {
                        return Err(self.to_remote_error(&error, request));
                    }
                    format!("HTTP {}: {}", error.status, self.shown(&error.message, request))
                }
            };
            let is_too_long = retry_after.is_some_and(|pause| pause > self.options.longest_pause);
            if in_these_forms >= self.options.attempts || is_too_long {
                return Err(RemoteError::Exhausted { address: address(), attempts, reason });
            }
            self.limit.hold_off(retry_after.unwrap_or_default());
            let seed = request.map_or(0, |request| request.seed);
            earliest = Instant::now() + backoff(seed, in_these_forms, self.options.first_pause);
        }
    }

    /// What a server or a library says as errors show it: without the API key and without what was sent, both of which some repeat, and
    /// cut only then, so that no part of them is left at the cut.
    fn shown(&self, message: &str, request: Option<&RemoteRequest>) -> String {
        let sent = request.map_or(&[][..], |request| &request.messages);
        match quotation::without_quotations(&self.transport.redact(message), sent) {
            message if message.is_empty() => "no reason given".to_owned(),
            message => ellipsis(&message, MESSAGE_CHARS),
        }
    }

    /// The error of a request that the server refused, naming the sampling parameter of `request` that it rejects, if it names one.
    fn to_remote_error(&self, error: &ServerError, request: Option<&RemoteRequest>) -> RemoteError {
        let (address, status) = (self.address.clone(), error.status);
        let message = self.shown(&error.message, request);
        let mut sent = request.into_iter().flat_map(|request| request.sampling.sent());
        let is_rejected = |name: &&str| matches!(status, 400 | 422) && error.names_parameter(name);
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
