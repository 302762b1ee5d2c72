//! The lines of a completion: that it was begun, and how it ended.

use std::time::Instant;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::{Audit, Who, failed};
use crate::audit::Event;
use crate::audit::event::{Input, Texts};
use crate::audit::key::random_name;
use crate::digest::hex;
use crate::serve::error::ApiError;

/// A request that a model answers: what its lines say of it.
pub trait Told: Sync {
    fn about(&self) -> About;

    /// What came out so far, without which nobody can repeat it.
    fn outputs(&self) -> Value;

    fn usage(&self) -> Value;

    fn finish_reasons(&self) -> Value;
}

/// What both lines of a request say.
pub struct About {
    pub model: String,
    pub fingerprint: String,
    /// `None`: nothing is drawn.
    pub seed: Option<u64>,
    /// The digest of everything that determines the output.
    pub request: String,
}

/// The lines of a completion: that it was begun, durable before a byte of it is sent, and how it ended; dropped before, it was cancelled
/// by its client.
pub struct Pending {
    audit: Audit,
    who: Who,
    path: String,
    /// What joins both lines.
    call: String,
    body: Input,
    sent: Sent,
    began: Instant,
    is_told: bool,
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

    /// An event with the sum and the length; without either where nothing was sent.
    pub fn told(self, event: Event) -> Event {
        match self.bytes {
            0 => event,
            bytes => event.with("sent_bytes", bytes).with_sum("sent", hex(&self.sum.finalize())),
        }
    }
}

impl Audit {
    /// What the lines of a completion have of its request's JSON; nothing where there is no trail. Its sum takes a while, so it is made on
    /// the thread that parses.
    pub fn input(&self, body: &[u8]) -> Input {
        self.trail.as_ref().map_or(Value::Null.into(), |trail| trail.sent(body))
    }
}

impl Pending {
    /// `body` is of the request's JSON, which whoever calls keeps a place for in the server's budget; `answer` what it is about to get.
    /// Waits until the line is durable; if the future is dropped before, the line has its end all the same.
    pub async fn begin(
        audit: &Audit,
        who: Who,
        path: &str,
        body: Input,
        answer: &impl Told,
    ) -> Result<Pending, ApiError> {
        let mut pending = Pending {
            audit: audit.clone(),
            who,
            path: path.to_owned(),
            call: String::new(),
            body,
            sent: Sent::default(),
            began: Instant::now(),
            is_told: true,
        };
        if audit.is_on() {
            pending.call = random_name().map_err(|_| failed())?;
            let event = pending.event("begun", &answer.about());
            pending.tell_begun(event).await?;
        }
        Ok(pending)
    }

    /// From here on it has an end, also if its client leaves while the line is written.
    async fn tell_begun(&mut self, event: Event) -> Result<(), ApiError> {
        // The text itself is told with the end.
        let input = match &self.body {
            Input::Sent { sum, .. } => Input::Sent { sum: sum.clone(), json: None },
            Input::Value(_) => Value::Null.into(),
        };
        self.is_told = false;
        let told = self.audit.tell(event.with_sum_of(&input)).await;
        self.is_told = told.is_err();
        told
    }

    /// Notes what is sent next.
    pub fn sent(&mut self, text: &str) {
        if self.audit.is_on() {
            self.sent.add(text);
        }
    }

    /// Logs the finished response, and waits until the line is durable.
    pub async fn done(&mut self, answer: &impl Told) -> Result<(), ApiError> {
        if !self.audit.is_on() {
            return Ok(());
        }
        let event = self.end("done", Some(answer));
        self.audit.tell(event).await
    }

    /// Logs a response that failed.
    pub fn failed(&mut self, error: &ApiError, answer: &impl Told) {
        if self.audit.is_on() && !self.is_told {
            let event = self.end(error.code.name(), Some(answer));
            self.audit.note(event);
        }
    }

    /// What both lines have.
    fn event(&self, name: &str, about: &About) -> Event {
        self.who
            .event(name)
            .with("call", self.call.as_str())
            .with("path", self.path.as_str())
            .with("model", about.model.as_str())
            .with("fingerprint", about.fingerprint.as_str())
            .with("seed", about.seed)
            .with_sum("request", about.request.as_str())
    }

    fn end(&mut self, status: &str, answer: Option<&dyn Told>) -> Event {
        self.is_told = true;
        let mut more = Map::new();
        more.insert("path".to_owned(), self.path.as_str().into());
        let mut output = Value::Null;
        let mut event = match answer {
            Some(answer) => {
                let about = answer.about();
                if let Some(seed) = about.seed {
                    more.insert("seed".to_owned(), seed.into());
                }
                output = answer.outputs();
                self.event("request", &about)
                    .with("usage", answer.usage())
                    .with("finish", answer.finish_reasons())
            }
            None => self.who.event("request").with("call", self.call.as_str()),
        };
        event = event
            .with("path", self.path.as_str())
            .with("elapsed_ms", self.began.elapsed().as_millis() as u64)
            .with("status", status);
        if status != "done" {
            event = std::mem::take(&mut self.sent).told(event);
        }
        let input = std::mem::replace(&mut self.body, Value::Null.into());
        event.with_texts(Texts { input, output, more })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.audit.is_on() && !self.is_told {
            let event = self.end("cancelled", None);
            self.audit.note(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::audit::{AuditOptions, Trail, files};

    #[test]
    fn a_client_that_leaves_while_the_first_line_is_written_leaves_a_call_with_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let trail = Trail::open(&AuditOptions::new(folder.path().join("audit"))).unwrap();
        let audit = Audit { trail: Some(trail) };
        let mut pending = Pending {
            audit: audit.clone(),
            who: Who::default(),
            path: "/v1/completions".to_owned(),
            call: "abc".to_owned(),
            body: audit.input(b"{}"),
            sent: Sent::default(),
            began: Instant::now(),
            is_told: true,
        };
        // Begun, and dropped at its first wait.
        let begun = Event::new("begun").with("call", "abc");
        let _ = pending.tell_begun(begun).now_or_never();
        drop(pending);
        audit.stop().unwrap();
        let lines = fs_err::read_to_string(files::current(&folder.path().join("audit"))).unwrap();
        let of_call: Vec<&str> =
            lines.lines().filter(|line| line.contains("\"call\":\"abc\"")).collect();
        assert_eq!(of_call.len(), 2, "{lines}");
        assert!(of_call[0].contains("\"event\":\"begun\"") && of_call[0].contains("\"input\":"));
        assert!(of_call[1].contains("\"status\":\"cancelled\""));
    }
}
