//! The client of an endpoint: rate limits, retries, and fallbacks for parameters that a server does not support.

use std::fmt;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use self::complaint::Complaint;
use self::forms::Known;
use self::limit::Limit;
use self::reply::Defect;
use self::transport::{Failure, Transport};
use super::{Address, RemoteCompletion, RemoteError, RemoteOptions, RemoteRequest, Waiting};

mod body;
mod complaint;
#[cfg(test)]
mod fake_server;
mod forms;
mod image;
mod limit;
mod reply;
mod retry;
#[cfg(test)]
mod tests;
mod transport;

/// Whether this build can ask an endpoint at all.
pub const AVAILABLE: bool = true;

/// How long a blocked thread goes without looking at its stop flag.
const PATIENCE: Duration = Duration::from_millis(50);

/// A model at an endpoint. Many threads may ask it at once.
pub struct RemoteModel {
    address: Address,
    options: RemoteOptions,
    transport: Transport,
    limit: Limit,
    known: Known,
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteModel({}, {:?})", self.address, self.options)
    }
}

/// What all attempts at one request share.
struct Persistence<'a> {
    seed: u64,
    stop: &'a AtomicBool,
    attempts: u32,
}

impl RemoteModel {
    /// Readies an endpoint; nothing is sent yet.
    ///
    /// # Errors
    /// [`RemoteError::Forbidden`] where connections are.
    pub fn open(address: &Address, options: RemoteOptions) -> Result<RemoteModel, RemoteError> {
        if let Some(reason) = options.offline {
            return Err(RemoteError::Forbidden { address: address.clone(), reason });
        }
        Ok(RemoteModel {
            address: address.clone(),
            transport: Transport::new(&options),
            limit: Limit::new(options.max_in_flight, options.requests_per_minute),
            known: Known::default(),
            options,
        })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Whether the endpoint lists the model, `None` where it gives no list: finds a dead endpoint, a wrong key or a misspelt model before a
    /// run begins.
    ///
    /// # Errors
    /// An endpoint that denies access or does not answer; one without such a list is no error.
    pub fn look_up(&self, stop: &AtomicBool) -> Result<Option<bool>, RemoteError> {
        let mut persistence = Persistence { seed: 0, stop, attempts: 0 };
        let read = |value: &Value| Ok(reply::lists(value, &self.address.model));
        let found =
            self.persist(&self.address.models(), None, &mut persistence, read, |_| false)?;
        match found {
            Ok(is_listed) => Ok(is_listed),
            Err(complaint) if [404, 405, 501].contains(&complaint.status) => Ok(None),
            Err(complaint) => Err(self.explain(complaint, None)),
        }
    }

    /// Asks for a completion and waits for it, through whatever passes: rate limits, overloads, lost connections. A
    /// parameter that the server does not know is left out, from the first request that succeeds without it on.
    ///
    /// # Errors
    /// See [`RemoteError::concerns_item`]. [`RemoteError::Interrupted`] once `stop` is set and no request is under way.
    pub fn complete(
        &self,
        request: &RemoteRequest,
        stop: &AtomicBool,
    ) -> Result<RemoteCompletion, RemoteError> {
        let started = Instant::now();
        let image = request.image.as_deref().map(image::address).transpose()?;
        let mut persistence = Persistence { seed: request.seed, stop, attempts: 0 };
        let mut forms = self.known.forms();
        loop {
            let body = body::write(&self.address.model, request, image.as_deref(), forms)?;
            let reshaped = |complaint: &Complaint| forms.without_blamed(complaint, request);
            let answer = self.persist(
                &self.address.completions(),
                Some(&body),
                &mut persistence,
                reply::read,
                |complaint| reshaped(complaint).is_some(),
            )?;
            match answer {
                Ok(reply) => {
                    let notes = self.known.learn(forms, &self.address);
                    return Ok(RemoteCompletion {
                        text: reply.text,
                        finish_reason: reply.finish_reason,
                        usage: reply.usage,
                        is_constrained: forms.constrain(request),
                        answered_by: reply.answered_by,
                        elapsed_ms: started.elapsed().as_millis() as u64,
                        attempts: persistence.attempts,
                        notes,
                    });
                }
                Err(complaint) => match reshaped(&complaint) {
                    Some(next) => forms = next,
                    None => return Err(self.explain(complaint, Some(request))),
                },
            }
        }
    }

    /// [`RemoteModel::complete`] on a thread of its own; gives what waits for it. A blocked read cannot be called off,
    /// but it can be left behind: the wait ends soon after `stop` is set, with [`RemoteError::Interrupted`].
    pub fn send(self: Arc<Self>, request: RemoteRequest, stop: Arc<AtomicBool>) -> Waiting {
        let (sender, receiver) = channel();
        let is_stopped = stop.clone();
        let thread = thread::spawn(move || {
            // Whoever asked may have been interrupted.
            let _ = sender.send(self.complete(&request, &stop));
        });
        Box::new(move || {
            while !is_stopped.load(Ordering::Relaxed) {
                match receiver.recv_timeout(PATIENCE) {
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

    /// Sends until an answer comes that another attempt would not better. A complaint is handed back where
    /// `is_settled` says so or where it would only be repeated.
    fn persist<T>(
        &self,
        url: &str,
        body: Option<&[u8]>,
        persistence: &mut Persistence<'_>,
        read: impl Fn(&Value) -> Result<T, Defect>,
        is_settled: impl Fn(&Complaint) -> bool,
    ) -> Result<Result<T, Complaint>, RemoteError> {
        let mut attempt = 1;
        loop {
            persistence.attempts += 1;
            let permit = self.limit.enter(persistence.stop).ok_or(RemoteError::Interrupted)?;
            let sent = self.transport.send(url, body);
            drop(permit);
            let (reason, asked_pause) = match sent {
                Err(Failure::TooLong) => {
                    return Err(RemoteError::TooLong {
                        address: self.address.clone(),
                        most_bytes: self.options.most_bytes,
                    });
                }
                Err(Failure::Lost(reason)) => (reason, None),
                Ok(answer) => match answer.read().and_then(|value| read(&value)) {
                    Ok(value) => return Ok(Ok(value)),
                    Err(Defect::Broken(reason)) => (reason, answer.retry_after),
                    Err(Defect::Filtered(message)) => {
                        return Err(RemoteError::Filtered {
                            address: self.address.clone(),
                            message,
                        });
                    }
                    Err(Defect::Complaint(complaint)) => {
                        if is_settled(&complaint) || !complaint.is_transient() {
                            return Ok(Err(complaint));
                        }
                        let reason = format!("HTTP {}: {}", complaint.status, complaint.message);
                        (self.transport.redact(reason), answer.retry_after)
                    }
                },
            };
            let is_too_long = asked_pause.is_some_and(|pause| pause > self.options.longest_pause);
            if attempt >= self.options.attempts || is_too_long {
                return Err(RemoteError::Exhausted {
                    address: self.address.clone(),
                    attempts: persistence.attempts,
                    reason,
                });
            }
            if let Some(pause) = asked_pause {
                self.limit.hold_off(pause);
            }
            let backoff = retry::backoff(persistence.seed, attempt, self.options.first_pause);
            let pause = backoff.max(asked_pause.unwrap_or_default());
            if !retry::sleep(pause, persistence.stop) {
                return Err(RemoteError::Interrupted);
            }
            attempt += 1;
        }
    }

    /// What a complaint means for a user; it may blame how `request` is to be sampled.
    fn explain(&self, complaint: Complaint, request: Option<&RemoteRequest>) -> RemoteError {
        let address = self.address.clone();
        let status = complaint.status;
        let mut sent = request.into_iter().flat_map(|request| request.sampling.sent());
        let blamed = sent.find(|name| matches!(status, 400 | 422) && complaint.blames(&[*name]));
        let message = self.transport.redact(complaint.message);
        if let Some(parameter) = blamed {
            return RemoteError::Sampling { address, parameter, status, message };
        }
        let code = complaint.code.as_deref().unwrap_or_default();
        match code {
            "content_filter" | "content_policy_violation" => {
                RemoteError::Filtered { address, message }
            }
            "model_not_found" => RemoteError::NotFound { address, status, message },
            _ => match status {
                401..=403 | 429 => RemoteError::Denied {
                    address,
                    status,
                    message,
                    variable: self.options.key.as_ref().map(|key| key.variable.clone()),
                },
                300..=399 | 404 | 405 | 410 | 501 => {
                    RemoteError::NotFound { address, status, message }
                }
                _ => RemoteError::Rejected { address, status, message },
            },
        }
    }
}
