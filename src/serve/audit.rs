//! The server's audit trail: each request, its client and its result. No byte of an answer is sent before the line that it was begun is
//! durable, and no last one before the line of its end.

use std::sync::Arc;
use std::time::Instant;

use axum::http::Extensions;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::sync::oneshot;

use super::app::Keys;
use super::case::{Ask, words};
use super::completion::CHAT;
use super::error::{ApiError, Code};
use super::guard::{Caller, Peer};
use super::keys::Key;
use super::models::Served;
use crate::audit::case::{usage, without_text};
use crate::audit::{AuditOptions, Event, Input, Trail, random_name};
use crate::diagnosis::Failure;
use crate::digest::hex;
use crate::experiment::case::Worked;
use crate::record::ItemText;

/// The audit trail, if there is one.
#[derive(Clone, Default)]
pub struct Audit {
    trail: Option<Trail>,
}

/// The client of a request, in the fields of a line.
#[derive(Clone, Debug, Default)]
pub struct Who(Vec<(&'static str, String)>);

impl Who {
    pub fn of(extensions: &Extensions) -> Who {
        let from = extensions.get::<Peer>().map(|peer| match *peer {
            Peer(Some(address), _) => address.to_string(),
            Peer(None, Some(user)) => format!("unix:{user}"),
            Peer(None, None) => "unix".to_owned(),
        });
        let mut fields = match extensions.get::<Caller>() {
            Some(caller) => vec![
                ("actor", caller.name().to_owned()),
                ("identity", caller.identity()),
                ("role", caller.role().name().to_owned()),
            ],
            // Where no keys are, whoever reaches the server may ask it: the users of its socket, or of its machine.
            None => {
                let user = from.as_deref().filter(|from| from.starts_with("unix:"));
                vec![("identity", user.unwrap_or("local").to_owned())]
            }
        };
        fields.extend(from.map(|from| ("from", from)));
        Who(fields)
    }

    pub fn event(&self, name: &str) -> Event {
        let event = Event::new(name);
        self.0.iter().fold(event, |event, (name, value)| event.with(name, value.as_str()))
    }
}

impl Audit {
    /// # Errors
    /// As [`Trail::open`].
    pub fn open(options: &AuditOptions) -> Result<Audit, Failure> {
        Ok(Audit { trail: Some(Trail::open(options, "serve")?) })
    }

    pub fn is_on(&self) -> bool {
        self.trail.is_some()
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

    fn sum(&self, text: impl AsRef<[u8]>) -> Option<String> {
        self.trail.as_ref()?.sum(text)
    }

    /// Waits until the line of an event is durable.
    async fn tell(&self, event: Event) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let (sender, written) = oneshot::channel();
        // The client may be gone.
        trail.send(event, move |is_written| sender.send(is_written).unwrap_or_default());
        written.await.ok().filter(|is_written| *is_written).map(drop).ok_or_else(failed)
    }

    /// The same on a thread that may wait.
    fn write(&self, event: Event) -> Result<(), ApiError> {
        let written = self.trail.as_ref().map_or(Ok(()), |trail| trail.write(event));
        written.map_err(|_| failed())
    }

    /// Tells of an event without waiting.
    pub fn note(&self, event: Event) {
        if let Some(trail) = &self.trail {
            trail.send(event, |_| {});
        }
    }

    /// Tells that a request was refused for its key, or for want of one: noise must not hide who guesses keys, nor fill the disk.
    pub fn refused(&self, who: &Who, why: &str) {
        if let Some(trail) = &self.trail {
            trail.count(who.event("refused").with("why", why));
        }
    }

    /// Tells that a client left the stream of a system before its end. `request` is the digest of the case.
    pub fn left(&self, who: &Who, request: &str, sent: Sent) {
        let event = who.event("left").with("path", CHAT).with("request", self.sum(request));
        self.note(sent.told(self, event));
    }

    /// Tells of the end of the server, and of the head of the chain.
    pub fn stop(&self) -> Result<(), Failure> {
        self.trail.as_ref().map_or(Ok(()), Trail::finish)
    }

    /// Tells of the models and systems.
    pub fn served(&self, served: &Served) {
        let model = |id: &str, fingerprint: &str| json!({"id": id, "fingerprint": fingerprint});
        let models = served.models.iter().map(|one| model(&one.id, &one.fingerprint));
        let encoders = served.encoders.iter().map(|one| model(&one.id, &one.fingerprint));
        let systems = served.systems.iter().map(|one| model(&one.id, &one.fingerprint));
        let event = Event::new("config")
            .with("models", models.chain(encoders).collect::<Vec<_>>())
            .with("systems", systems.collect::<Vec<_>>())
            .with("sandbox", served.sandbox.as_deref());
        self.note(event);
    }

    /// Tells of the names of the current keys.
    pub fn keys(&self, keys: &Keys) {
        let names = |keys: &Arc<Vec<Key>>| keys.iter().map(|key| key.name.clone()).collect();
        let names: Option<Vec<String>> = keys.as_ref().map(names);
        self.note(Event::new("config").with("keys", json!(names)));
    }
}

fn failed() -> ApiError {
    let message = "the audit trail could not be written, and nothing is served without it";
    ApiError::new(Code::AuditFailed, message).retry_after(60)
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

/// What was sent so far of a stream.
#[derive(Clone, Debug, Default)]
pub struct Sent {
    sum: Sha256,
    bytes: u64,
}

impl Sent {
    pub fn add(&mut self, text: &str) {
        self.sum.update(text);
        self.bytes += text.len() as u64;
    }

    fn told(self, audit: &Audit, event: Event) -> Event {
        match self.bytes {
            0 => event,
            bytes => {
                let sum = audit.sum(hex(&self.sum.finalize()));
                event.with("sent_bytes", bytes).with("sent", sum)
            }
        }
    }
}

/// The lines of a request or a case: that it was begun, and how it ended; dropped before, it was cancelled by its client.
pub struct Pending {
    audit: Audit,
    /// What both lines have.
    both: Event,
    /// What the line of its end is called.
    end: &'static str,
    input: Input,
    sent: Sent,
    began: Instant,
    /// Whether its end is told, or needs not be.
    is_told: bool,
}

impl Pending {
    fn new(
        audit: &Audit,
        both: Event,
        end: &'static str,
        input: Input,
    ) -> Result<Pending, ApiError> {
        let both = both.with("call", random_name().map_err(|_| failed())?);
        let (audit, is_told) = (audit.clone(), !audit.is_on());
        let (sent, began) = (Sent::default(), Instant::now());
        Ok(Pending { audit, both, end, input, sent, began, is_told })
    }

    /// Of a request. `input` is of its JSON, which whoever calls keeps a place for in the server's budget.
    /// Waits until the line is durable; if the future is dropped before, the line has its end all the same.
    pub async fn begin(
        audit: &Audit,
        who: Who,
        path: &str,
        input: Input,
        about: &About,
    ) -> Result<Pending, ApiError> {
        let both = who
            .event("begun")
            .with("path", path)
            .with("model", about.model.as_str())
            .with("fingerprint", about.fingerprint.as_str())
            .with("seed", about.seed)
            .with("request", audit.sum(&about.request));
        let mut pending = Pending::new(audit, both, "request", input)?;
        let told = audit.tell(pending.both.clone().with_input(&pending.input)).await;
        pending.is_told |= told.is_err();
        told.map(|()| pending)
    }

    /// Of a case. Waits until the line is durable.
    pub fn of_case(audit: &Audit, ask: &Ask, run: u32) -> Result<Pending, ApiError> {
        let both = ask
            .who
            .event("begun")
            .with("system", ask.system.id.as_str())
            .with("fingerprint", ask.system.fingerprint.as_str())
            .with("seed", ask.seed)
            .with("run", run)
            .with("item", audit.sum(ask.item.id()))
            .with("request", audit.sum(ask.digest()));
        let input = audit.input(json!(ItemText::from(&ask.item)).to_string().as_bytes());
        let mut pending = Pending::new(audit, both, "case", input)?;
        let told = audit.write(pending.both.clone().with_input(&pending.input));
        pending.is_told |= told.is_err();
        told.map(|()| pending)
    }

    /// Notes what is sent next.
    pub fn sent(&mut self, text: &str) {
        if !self.is_told {
            self.sent.add(text);
        }
    }

    /// Tells of the finished response, and waits until the line is durable.
    pub async fn done(&mut self, about: About) -> Result<(), ApiError> {
        match self.ended("done", about) {
            Some(event) => self.audit.tell(event).await,
            None => Ok(()),
        }
    }

    /// Tells of a response that failed.
    pub fn failed(&mut self, error: &ApiError, about: About) {
        let event = self.ended(error.code.name(), about);
        event.into_iter().for_each(|event| self.audit.note(event));
    }

    /// Tells of the outcome of a case, and waits until the line is durable.
    pub fn case(mut self, ask: &Ask, outcome: &Result<Worked, ApiError>) -> Result<(), ApiError> {
        let event = match outcome {
            Ok(worked) => {
                let line = self.audit.sum("").map(|_| without_text(&worked.line));
                self.both = self.both.clone().with("record", line);
                let output = words::outcome(&ask.item, worked);
                let about = About { output, usage: usage(worked.usage), ..About::default() };
                self.ended("done", about)
            }
            Err(error) => {
                let about = About { output: error.json(), ..About::default() };
                self.ended(error.code.name(), about)
            }
        };
        event.map_or(Ok(()), |event| self.audit.write(event))
    }

    /// The line of its end, once.
    fn ended(&mut self, status: &str, about: About) -> Option<Event> {
        let trail = self.audit.trail.as_ref().filter(|_| !self.is_told)?;
        let mut event = self
            .both
            .clone()
            .with("event", self.end)
            .with("elapsed_ms", self.began.elapsed().as_millis() as u64)
            .with("status", status)
            .with("usage", about.usage)
            .with("finish", about.finish);
        if status != "done" {
            event = std::mem::take(&mut self.sent).told(&self.audit, event);
        }
        let input = std::mem::take(&mut self.input);
        let event = trail.ended(event, input, &about.output);
        self.is_told = true;
        Some(event)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let event = self.ended("cancelled", About::default());
        event.into_iter().for_each(|event| self.audit.note(event));
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn a_client_that_leaves_while_the_first_line_is_written_leaves_a_call_with_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let options = AuditOptions::new(folder.path().join("audit"));
        let audit = Audit::open(&options).unwrap();
        // Begun, and dropped at its first wait.
        let body = audit.input(b"{}");
        let about = About::default();
        let begun = Pending::begin(&audit, Who::default(), "/v1/completions", body, &about);
        assert!(begun.now_or_never().is_none());
        audit.stop().unwrap();
        let lines = fs_err::read_to_string(options.directory.join("trail.jsonl")).unwrap();
        let of_call: Vec<&str> = lines.lines().filter(|line| line.contains("\"call\":")).collect();
        assert_eq!(of_call.len(), 2, "{lines}");
        assert!(of_call[0].contains("\"event\":\"begun\"") && of_call[0].contains("\"input\":"));
        assert!(of_call[1].contains("\"status\":\"cancelled\""));
    }
}
