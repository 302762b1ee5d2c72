//! What the server tells the audit trail: who asked, what for, what came of it; and nothing is answered before its line is durable.

use std::time::Instant;

use axum::extract::Request;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

use super::app::{Caller, KeyRing};
use super::case::{Ask, words};
use super::error::{ApiError, Code};
use super::guard::{self, Peer};
use super::models::Served;
use super::response::answer::Answer;
use crate::audit::case::{CaseLine, usage, without_text};
use crate::audit::event::Texts;
use crate::audit::{AuditOptions, Event, Trail};
use crate::diagnosis::Failure;
use crate::experiment::case::Worked;
use crate::record::ItemText;

/// The way to the trail; without one nothing is kept.
#[derive(Clone, Default)]
pub struct Audit {
    trail: Option<Trail>,
}

/// Who asks, and from where.
#[derive(Clone, Debug, Default)]
pub struct Who {
    actor: Option<String>,
    role: Option<&'static str>,
    from: Option<String>,
}

/// A case that has ended.
pub struct CaseRecord<'a> {
    pub id: Option<&'a str>,
    pub ask: &'a Ask,
    pub outcome: &'a Result<Worked, ApiError>,
    pub elapsed_ms: u64,
}

/// What somebody thinks of a case.
pub struct Feedback<'a> {
    pub case: &'a str,
    pub is_helpful: Option<bool>,
    pub comment: &'a str,
}

impl Who {
    pub fn of(request: &Request) -> Who {
        let peer = request.extensions().get::<Peer>();
        let from = peer.map(|peer| match peer.0 {
            Some(address) => address.to_string(),
            None => "unix".to_owned(),
        });
        Who { from, ..Who::holder(guard::caller(request).as_ref()) }
    }

    /// Of a key, wherever its holder is.
    fn holder(caller: Option<&Caller>) -> Who {
        Who {
            actor: caller.map(|caller| caller.key.name.clone()),
            role: caller.map(|caller| caller.key.role.name()),
            from: None,
        }
    }

    /// The same, known by a key since.
    pub fn with_actor(self, caller: &Caller) -> Who {
        Who { from: self.from, ..Who::holder(Some(caller)) }
    }

    pub fn event(&self, name: &str) -> Event {
        let Who { actor, role, from } = self;
        Event::new(name)
            .with("actor", actor.as_deref())
            .with("role", *role)
            .with("from", from.as_deref())
    }
}

impl Audit {
    /// Opens the trail of a directory, and logs that the server starts.
    ///
    /// # Errors
    /// A directory that cannot be written; a trail that was changed.
    pub fn open(options: &AuditOptions) -> Result<Audit, Failure> {
        let trail = Trail::open(options)?;
        let event = Event::new("start")
            .with("verb", "serve")
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("keeps", options.content.name());
        trail.write(event)?;
        Ok(Audit { trail: Some(trail) })
    }

    /// Whether anything is kept.
    pub fn is_on(&self) -> bool {
        self.trail.is_some()
    }

    /// # Errors
    /// A trail that could not be written: what cannot be logged is not served.
    pub fn check(&self) -> Result<(), ApiError> {
        match &self.trail {
            Some(trail) if trail.is_failing() => Err(failed()),
            _ => Ok(()),
        }
    }

    /// Logs an event and waits until its line is durable.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub async fn tell(&self, event: Event) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let (sender, written) = oneshot::channel();
        trail.send(event, move |is_written| {
            // Nobody waits any more where a client is gone.
            let _ = sender.send(is_written);
        });
        match written.await {
            Ok(true) => Ok(()),
            _ => Err(failed()),
        }
    }

    /// Logs an event that nobody waits for.
    pub fn note(&self, event: Event) {
        if let Some(trail) = &self.trail {
            trail.send(event, |_| {});
        }
    }

    /// Logs that the server ends, and tells the head.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub fn stop(&self) -> Result<(), ApiError> {
        match &self.trail {
            Some(trail) => trail.finish(Event::new("stop")).map_err(|_| failed()),
            None => Ok(()),
        }
    }

    /// Logs what is served from now on, and how it was asked for.
    pub fn served(&self, served: &Served, arguments: &Value) {
        let model = |id: &str, fingerprint: &str| json!({"id": id, "fingerprint": fingerprint});
        let models = served.models.iter().map(|one| model(&one.id, &one.fingerprint));
        let systems = served.systems.iter().map(|one| model(&one.id, &one.fingerprint));
        let event = Event::new("config")
            .with("models", models.collect::<Vec<_>>())
            .with("systems", systems.collect::<Vec<_>>())
            .with("arguments", arguments.clone())
            .with("sandbox", served.sandbox.as_deref());
        self.note(event);
    }

    /// Logs which keys hold from now on.
    pub fn keys(&self, keys: Option<&KeyRing>) {
        let name = |name: &str| name.to_owned();
        let names: Option<Vec<String>> = keys.map(|keys| keys.names().map(name).collect());
        self.note(Event::new("config").with("keys", json!(names)));
    }

    /// Logs what came of a case: the outcome without its text, and the text as the trail is to keep it. It waits for the disk.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub fn case(&self, case: &CaseRecord<'_>) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let CaseRecord { id, ask, outcome, elapsed_ms } = case;
        let mut more = Map::new();
        let output = match outcome {
            Ok(worked) => {
                more.insert("line".to_owned(), words::record(&worked.line));
                more.insert("searches".to_owned(), json!(worked.searches));
                more.insert("seats".to_owned(), ask.system.seats().into());
                more.insert("synthetic".to_owned(), ask.system.is_synthetic.into());
                words::outcome(&ask.item, worked)
            }
            Err(error) => error.json(),
        };
        let told = CaseLine {
            system: &ask.system.id,
            fingerprint: Some(&ask.system.fingerprint),
            seed: ask.seed,
            run: ask.run,
            elapsed_ms: *elapsed_ms,
            status: outcome.as_ref().map_or_else(|error| error.code.name(), |_| "done"),
            item: ask.item.id(),
        };
        let event = ask.who.event("case").with("case", *id).with_texts(Texts {
            input: json!(ItemText::from(&ask.item)),
            output,
            more,
        });
        let mut event = told.on(event);
        if let Ok(worked) = outcome {
            event = event
                .with("usage", usage(worked.usage))
                .with_detail("record", without_text(&worked.line));
        }
        trail.write(event).map_err(|_| failed())
    }

    /// Logs what somebody thinks of a case.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub async fn feedback(&self, who: &Who, feedback: &Feedback<'_>) -> Result<(), ApiError> {
        let Feedback { case, is_helpful, comment } = feedback;
        let mut event = who.event("feedback").with("case", *case).with("is_helpful", *is_helpful);
        if !comment.is_empty() {
            let input = json!({"comment": comment});
            event = event.with_texts(Texts { input, output: Value::Null, more: Map::new() });
        }
        self.tell(event).await
    }
}

fn failed() -> ApiError {
    let message = "the audit trail could not be written, and nothing is served without it";
    ApiError::new(Code::AuditFailed, message).retry_after(60)
}

/// A completion on its way to the trail: one line, however it ends. Dropped before its end, its client was gone.
pub struct Pending {
    audit: Audit,
    who: Who,
    path: String,
    body: Value,
    began: Instant,
    is_told: bool,
}

impl Pending {
    /// `body`: what was sent, which is JSON.
    pub fn new(audit: &Audit, who: Who, path: &str, body: &[u8]) -> Pending {
        let body = match audit.is_on() {
            true => serde_json::from_slice(body).unwrap_or_default(),
            false => Value::Null,
        };
        let (audit, path) = (audit.clone(), path.to_owned());
        Pending { audit, who, path, body, began: Instant::now(), is_told: false }
    }

    /// Logs the finished answer, and waits until the line is durable.
    ///
    /// # Errors
    /// See [`Audit::check`].
    pub async fn done(&mut self, answer: &Answer) -> Result<(), ApiError> {
        if !self.audit.is_on() {
            return Ok(());
        }
        let event = self.event("done", Some(answer));
        self.audit.tell(event).await
    }

    /// Logs that the answer broke off.
    pub fn failed(&mut self, error: &ApiError, answer: &Answer) {
        if self.audit.is_on() && !self.is_told {
            let event = self.event(error.code.name(), Some(answer));
            self.audit.note(event);
        }
    }

    fn event(&mut self, status: &str, answer: Option<&Answer>) -> Event {
        self.is_told = true;
        let mut more = Map::new();
        more.insert("path".to_owned(), self.path.as_str().into());
        let mut event = self
            .who
            .event("request")
            .with("path", self.path.as_str())
            .with("elapsed_ms", self.began.elapsed().as_millis() as u64)
            .with("status", status);
        let mut output = Value::Null;
        if let Some(answer) = answer {
            let heading = &answer.heading;
            more.insert("seed".to_owned(), heading.seed.into());
            output = answer.outputs();
            event = event
                .with("model", heading.model.id.as_str())
                .with("fingerprint", heading.model.fingerprint.as_str())
                .with("seed", heading.seed)
                .with_sum("request", heading.digest.as_str())
                .with("usage", answer.usage())
                .with("finish", answer.finish_reasons());
        }
        event.with_texts(Texts { input: std::mem::take(&mut self.body), output, more })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if self.audit.is_on() && !self.is_told {
            let event = self.event("cancelled", None);
            self.audit.note(event);
        }
    }
}
