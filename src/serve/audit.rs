//! The server's audit trail: each request, its client and its result. No byte of an answer is sent before the line that it was begun is
//! durable, and no last one before the line of its end.

use std::net::IpAddr;
use std::time::Instant;

use axum::http::Extensions;
use serde_json::Value;
use tokio::sync::oneshot;

use super::body::Reserved;
use super::error::{ApiError, Code};
use super::guard::Caller;
use crate::audit::{AuditOptions, Event, Input, Trail, random_name};
use crate::diagnosis::Failure;

/// The audit trail, if there is one.
#[derive(Clone, Default)]
pub struct Audit {
    trail: Option<Trail>,
}

/// What came of a client: the line that it begins, with who asks; what went in, which takes of the budget as long as the trail keeps it.
pub struct Received {
    pub begun: Event,
    pub input: Input,
    pub reserved: Option<Reserved>,
}

/// An event of a request's client.
pub fn event(name: &str, extensions: &Extensions) -> Event {
    let event = match extensions.get::<Caller>() {
        Some(caller) => {
            Event::new(name).with("actor", caller.name.as_str()).with("identity", caller.identity())
        }
        // Where no keys are, whoever reaches the server may ask it: the users of its machine.
        None => Event::new(name).with("identity", "local"),
    };
    event.with("from", extensions.get::<IpAddr>().map(IpAddr::to_string))
}

impl Audit {
    /// # Errors
    /// As [`Trail::open`].
    pub fn open(options: &AuditOptions) -> Result<Audit, Failure> {
        Ok(Audit { trail: Some(Trail::open(options, "serve")?) })
    }

    /// # Errors
    /// A trail that could not be written: without it nothing is served.
    pub fn check(&self) -> Result<(), ApiError> {
        match &self.trail {
            Some(trail) if trail.is_failing() => Err(failed()),
            _ => Ok(()),
        }
    }

    /// What lines have of a request's JSON. Its sum takes a while, so it is made on the thread that parses.
    pub fn input(&self, body: &[u8]) -> Input {
        self.trail.as_ref().map(|trail| trail.input(body)).unwrap_or_default()
    }

    /// Tells of the end of the server, and of the head of the chain.
    pub fn stop(&self) -> Result<(), Failure> {
        self.trail.as_ref().map_or(Ok(()), Trail::finish)
    }
}

fn failed() -> ApiError {
    let message = "the audit trail could not be written, and nothing is served without it";
    ApiError::new(Code::AUDIT_FAILED, message).retry_after(60)
}

/// Waits until the line of an event is durable.
async fn tell(trail: &Trail, event: Event) -> Result<(), ApiError> {
    let (sender, written) = oneshot::channel();
    // The client may be gone.
    trail.send(event, move |is_written| sender.send(is_written).unwrap_or_default());
    written.await.ok().filter(|is_written| *is_written).map(drop).ok_or_else(failed)
}

/// What the lines of a request say of what answers it.
#[derive(Default)]
pub struct About {
    pub model: String,
    pub fingerprint: String,
    /// `None`: nothing is drawn.
    pub seed: Option<u64>,
    /// The digest of everything that determines the output.
    pub request: String,
    /// What came out so far, without which nobody can repeat it.
    pub output: Value,
    pub usage: Value,
    pub finish: Value,
}

/// The lines of a request: that it was begun, and how it ended; dropped before, it was cancelled by its client.
pub struct Pending {
    /// `None` once its end is told, or where there is nobody to tell.
    trail: Option<Trail>,
    /// What both lines have.
    both: Event,
    input: Input,
    /// What its body takes of the budget.
    _reserved: Option<Reserved>,
    /// How much was sent so far of a stream.
    sent_bytes: u64,
    began: Instant,
}

impl Pending {
    /// Waits until the line is durable; if the future is dropped before, the line has its end all the same.
    pub async fn begin(
        audit: &Audit,
        received: Received,
        about: &About,
    ) -> Result<Pending, ApiError> {
        let Received { begun, input, reserved } = received;
        let trail = audit.trail.clone();
        let both = begun
            .with("model", about.model.as_str())
            .with("fingerprint", about.fingerprint.as_str())
            .with("seed", about.seed)
            .with("request", trail.as_ref().map(|trail| trail.sum(&about.request)))
            .with("call", random_name().map_err(|_| failed())?);
        let mut pending = Pending {
            _reserved: reserved.filter(|_| trail.is_some()),
            trail,
            both,
            input,
            sent_bytes: 0,
            began: Instant::now(),
        };
        if let Some(trail) = pending.trail.clone() {
            let told = tell(&trail, pending.both.clone().with_input(&pending.input)).await;
            if told.is_err() {
                pending.trail = None;
            }
            told?;
        }
        Ok(pending)
    }

    /// Notes how much is sent next.
    pub fn sent(&mut self, text: &str) {
        self.sent_bytes += text.len() as u64;
    }

    /// Tells of the finished response, and waits until the line is durable.
    pub async fn done(&mut self, about: About) -> Result<(), ApiError> {
        match self.ended("done", about) {
            Some((trail, event)) => tell(&trail, event).await,
            None => Ok(()),
        }
    }

    /// Tells of a response that failed, or that its client left, without waiting.
    pub fn failed(&mut self, status: &str, about: About) {
        if let Some((trail, event)) = self.ended(status, about) {
            trail.send(event, |_| {});
        }
    }

    /// The line of its end, once.
    fn ended(&mut self, status: &str, about: About) -> Option<(Trail, Event)> {
        let trail = self.trail.take()?;
        let mut event = self
            .both
            .clone()
            .with("event", "request")
            .with("elapsed_ms", self.began.elapsed().as_millis() as u64)
            .with("status", status)
            .with("usage", about.usage)
            .with("finish", about.finish);
        if status != "done" && self.sent_bytes > 0 {
            event = event.with("sent_bytes", self.sent_bytes);
        }
        let event = trail.ended(event, std::mem::take(&mut self.input), &about.output);
        Some((trail, event))
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.failed("cancelled", About::default());
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_client_that_leaves_while_the_first_line_is_written_leaves_a_call_with_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("audit");
        let options = AuditOptions { directory, ..AuditOptions::default() };
        let audit = Audit::open(&options).unwrap();
        // Begun, and dropped at its first wait.
        let body = audit.input(b"{}");
        let about = About::default();
        let received = Received { begun: Event::new("begun"), input: body, reserved: None };
        let begun = Pending::begin(&audit, received, &about);
        assert!(begun.now_or_never().is_none());
        audit.stop().unwrap();
        let lines = fs_err::read_to_string(options.directory.join("trail.jsonl")).unwrap();
        let of_call: Vec<&str> = lines.lines().filter(|line| line.contains("\"call\":")).collect();
        assert_eq!(of_call.len(), 2, "{lines}");
        assert!(of_call[0].contains("\"event\":\"begun\"") && of_call[0].contains("\"input\":"));
        assert!(of_call[1].contains("\"status\":\"cancelled\""));
    }
}
