//! The client of an endpoint: pace, retries, and fallbacks for parameters that a server does not support.

use std::fmt::{self, Display};
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use serde::de::IgnoredAny;

use self::body::Forms;
use self::reply::{NoAnswer, ServerError};
use self::transport::{HttpAnswer, Transport};
use super::{Address, RemoteOptions, RemoteRequest};
use crate::calls::KeptCall;
use crate::console;
use crate::diagnosis::{Diagnosis, Failure};
use crate::hub::OfflineReason;
use crate::panel::PanelError;
use crate::panel::responder::Waiting;
use crate::random::mix;
use crate::record::count;
use crate::text::ellipsis;

mod body;
#[cfg(test)]
mod fake_server;
mod quotation;
mod reply;
#[cfg(test)]
mod tests;
mod transport;

/// How often a waiting thread looks whether it may go on.
const POLL_INTERVAL: Duration = Duration::from_millis(10);
const LONGEST_BACKOFF: Duration = Duration::from_secs(60);
/// A server that asks to wait longer than this is not asked again.
const LONGEST_PAUSE: Duration = Duration::from_secs(300);
/// Characters of a server's message that an error shows.
const MESSAGE_CHARS: usize = 300;

/// A model at an endpoint. Many threads may ask it at once.
pub struct RemoteModel {
    address: Address,
    options: RemoteOptions,
    transport: Transport,
    pace: Mutex<Pace>,
    /// What the endpoint was found to accept.
    learned: Mutex<Forms>,
}

struct Pace {
    in_flight: usize,
    /// Before this no request begins: the server has asked for a pause.
    next: Instant,
}

impl fmt::Debug for RemoteModel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RemoteModel({}, {:?})", self.address, self.options)
    }
}

impl RemoteModel {
    /// Prepares a client; nothing is sent yet.
    pub fn open(address: &Address, options: RemoteOptions) -> Result<RemoteModel, Failure> {
        let refused = |why: &dyn Display, hint: &str| {
            Failure::usage(format!("{address} cannot be asked: {why}"), hint)
        };
        // A command that only looks at what is there sends nothing to it.
        if let Some(reason) = options.offline.filter(|reason| *reason != OfflineReason::Command) {
            let hint = "name a local model, or run where connections are allowed";
            return Err(refused(&reason, hint));
        }
        Ok(RemoteModel {
            address: address.clone(),
            transport: Transport::new(&options, address)
                .map_err(|problem| refused(&problem, &problem.hint().unwrap_or_default()))?,
            pace: Mutex::new(Pace { in_flight: 0, next: Instant::now() }),
            learned: Mutex::default(),
            options,
        })
    }

    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Finds a dead endpoint or a wrong key before a run begins, by asking for the list of models.
    ///
    /// # Errors
    /// An endpoint that denies access or does not answer; one without such a list is no error.
    pub fn look_up(&self, stop: &AtomicBool) -> Result<(), PanelError> {
        match self.ask(&self.address.models(), None, stop, HttpAnswer::json::<IgnoredAny>) {
            Ok(_) | Err(PanelError::Refused { status: 404 | 405 | 501, .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Asks for a completion and waits for it, with retries on rate limits, overload and lost connections. A parameter that the server
    /// rejects is sent in another form or left out; the form is remembered once a request with it succeeds.
    ///
    /// The text is without reasoning that the server returns separately; for a refusal, its words, or what came before a filter cut it off.
    /// The usage is zeros where the server does not report it, the time that of all attempts and pauses.
    ///
    /// # Errors
    /// See [`PanelError::concerns_item`]. [`PanelError::Interrupted`] once `stop` is set and no request is in flight.
    pub fn complete(
        &self,
        request: &RemoteRequest,
        stop: &AtomicBool,
    ) -> Result<KeptCall, PanelError> {
        let started = Instant::now();
        let url = self.address.completions();
        let (mut said, forms) = self.ask(&url, Some(request), stop, reply::read)?;
        for note in lock(&self.learned).learn(forms, request) {
            console::note(format!("note: {} {note}", self.address));
        }
        let elsewhere = said.elsewhere.get_or_insert_default();
        elsewhere.constrained = forms.constrain(request);
        elsewhere.not_sent = forms.not_sent(request);
        if let Some(key) = self.options.key.as_ref().filter(|key| !key.is_word()) {
            let by = elsewhere.answered_by.iter_mut();
            let by = by.flat_map(|by| [&mut by.model, &mut by.fingerprint]).flatten();
            by.chain([&mut said.text]).for_each(|text| *text = key.redact(text));
        }
        said.elapsed_ms = started.elapsed().as_millis() as u64;
        Ok(said)
    }

    /// [`RemoteModel::complete`] on a thread of its own; the returned closure waits for it. A blocked read cannot be cancelled, but the
    /// wait ends soon after `stop` is set, with [`PanelError::Interrupted`].
    pub fn send(self: Arc<Self>, request: RemoteRequest, stop: Arc<AtomicBool>) -> Waiting {
        let is_stopped = stop.clone();
        let thread = thread::spawn(move || self.complete(&request, &stop));
        Box::new(move || {
            while !thread.is_finished() {
                if is_stopped.load(Ordering::Relaxed) {
                    return Err(PanelError::Interrupted);
                }
                thread::sleep(POLL_INTERVAL);
            }
            thread.join().unwrap_or_else(|panic| resume_unwind(panic))
        })
    }

    /// Sends `request`, or asks for what lies at `url`, until an answer comes or attempts run out. A parameter that the server rejects is
    /// sent in its next form, which is no attempt.
    fn ask<T>(
        &self,
        url: &str,
        request: Option<&RemoteRequest>,
        stop: &AtomicBool,
        read: impl Fn(&HttpAnswer) -> Result<T, NoAnswer>,
    ) -> Result<(T, Forms), PanelError> {
        let mut forms = *lock(&self.learned);
        let (mut attempts, mut earliest) = (0, Instant::now());
        loop {
            let body = request.map(|request| forms.write(&self.address.model, request));
            self.wait_for_turn(earliest, stop)?;
            let answer = self.transport.send(url, body.as_deref());
            lock(&self.pace).in_flight -= 1;
            let asked = answer.as_ref().ok().and_then(|answer| answer.retry_after);
            let reason = match answer.and_then(|answer| read(&answer)) {
                Ok(read) => return Ok((read, forms)),
                Err(NoAnswer::Lost(reason)) => self.shown(&reason, request),
                Err(NoAnswer::Refused(error)) => {
                    let next = request.and_then(|request| forms.after_rejection(&error, request));
                    if let Some(next) = next {
                        forms = next;
                        continue;
                    }
                    if !error.is_transient() {
                        return Err(self.refusal(&error, request));
                    }
                    format!("HTTP {}: {}", error.status, self.shown(&error.message, request))
                }
            };
            attempts += 1;
            let pause = asked.unwrap_or_default();
            if attempts >= self.options.attempts || pause > LONGEST_PAUSE {
                let address = &self.address;
                return Err(PanelError::OfItem(Failure::machine(
                    format!("{address} gave no answer ({}): {reason}", count(attempts, "attempt")),
                    "once the endpoint answers again, `wardround resume DIR` tries the item again",
                )));
            }
            let now = Instant::now();
            let mut pace = lock(&self.pace);
            pace.next = pace.next.max(now + pause);
            let seed = request.map_or(0, |request| request.seed);
            earliest = now + backoff(seed, attempts, self.options.first_pause);
        }
    }

    /// Waits until a request may begin, which it may not before `earliest`.
    fn wait_for_turn(&self, earliest: Instant, stop: &AtomicBool) -> Result<(), PanelError> {
        while !stop.load(Ordering::Relaxed) {
            let mut pace = lock(&self.pace);
            let is_free = pace.in_flight < self.options.max_in_flight.max(1);
            if is_free && pace.next.max(earliest) <= Instant::now() {
                pace.in_flight += 1;
                return Ok(());
            }
            drop(pace);
            thread::sleep(POLL_INTERVAL);
        }
        Err(PanelError::Interrupted)
    }

    /// What a server or a library says as errors show it: without the API key, which some repeat, and cut only then, so that no part of it
    /// is left at the cut. Nothing where it quotes what was sent.
    fn shown(&self, message: &str, request: Option<&RemoteRequest>) -> String {
        let key = self.options.key.as_ref();
        let message = key.map_or_else(|| message.to_owned(), |key| key.redact(message));
        let sent = request.map_or(&[][..], |request| &request.messages);
        match () {
            () if message.is_empty() => "no reason given".to_owned(),
            () if quotation::quotes(&message, sent) => "its reason quotes the prompt".to_owned(),
            () => ellipsis(&message, MESSAGE_CHARS),
        }
    }

    /// The error of a request that the server refused: of the item, unless whatever is asked would be refused, for want of access, the model
    /// or a sampling parameter that was set.
    fn refusal(&self, error: &ServerError, request: Option<&RemoteRequest>) -> PanelError {
        let (address, status) = (self.address.clone(), error.status);
        let message = self.shown(&error.message, request);
        let mut set = request.into_iter().flat_map(|request| request.sampling.sent());
        let is_of_all = match status {
            400 | 422 => set.any(|name| error.names_parameter(name)),
            _ => matches!(status, 300..=399 | 401..=405 | 410 | 429 | 501),
        };
        match is_of_all || error.is_no_model() {
            true => PanelError::Refused { address, status, message },
            false => PanelError::OfItem(Failure::refused(format!(
                "{address} refuses the prompt (HTTP {status}): {message}"
            ))),
        }
    }
}

/// Exponential backoff with jitter: the pause after attempt number `attempt`, counted from 1. `first` doubled for each further attempt, at
/// most a minute, times a factor from 0.5 to 1 drawn from the call's seed, so that calls that failed together do not retry together.
fn backoff(seed: u64, attempt: u32, first: Duration) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(attempt - 1));
    let drawn = mix(seed ^ u64::from(attempt).rotate_right(8)) >> 11;
    let factor = 0.5 + 0.5 * drawn as f64 / (1_u64 << 53) as f64;
    doubled.min(LONGEST_BACKOFF).mul_f64(factor)
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
