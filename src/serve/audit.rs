//! The server's audit trail: each request, its client and its result. No response is sent before its line is durable.

use axum::http::Extensions;
use serde_json::{Map, Value, json};
use tokio::sync::oneshot;

pub use self::pending::{About, Pending, Sent, Told};
use super::app::KeyRing;
use super::case::{Ask, words};
use super::completion::CHAT;
use super::error::{ApiError, Code};
use super::guard::{Caller, Peer};
use super::models::Served;
use crate::audit::case::{CaseLine, tokens, usage, without_text};
use crate::audit::event::{Input, Texts};
use crate::audit::key::random_name;
use crate::audit::{AuditOptions, Event, Trail};
use crate::diagnosis::Failure;
use crate::experiment::case::Worked;
use crate::record::ItemText;

mod pending;

/// The audit trail, if there is one.
#[derive(Clone, Default)]
pub struct Audit {
    trail: Option<Trail>,
}

/// The client of a request: its name, identity and role, and its address.
#[derive(Clone, Debug, Default)]
pub struct Who {
    actor: Option<String>,
    identity: Option<String>,
    role: Option<&'static str>,
    from: Option<String>,
}

impl Who {
    pub fn of(extensions: &Extensions) -> Who {
        let peer = extensions.get::<Peer>();
        let from = peer.map(|peer| match peer.0 {
            Some(address) => address.to_string(),
            None => "unix".to_owned(),
        });
        let caller = extensions.get::<Caller>();
        Who {
            actor: caller.map(|caller| caller.name().to_owned()),
            identity: caller.map(Caller::identity),
            role: caller.map(|caller| caller.role().name()),
            from,
        }
    }

    pub fn event(&self, name: &str) -> Event {
        let Who { actor, identity, role, from } = self;
        Event::new(name)
            .with("actor", actor.as_deref())
            .with("identity", identity.as_deref())
            .with("role", *role)
            .with("from", from.as_deref())
    }
}

impl Audit {
    /// Opens the trail of a directory, and logs the start of the server.
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

    /// Logs an event and waits until its line is durable.
    pub async fn tell(&self, event: Event) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let (sender, written) = oneshot::channel();
        trail.send(event, move |is_written| {
            // The client may be gone.
            let _ = sender.send(is_written);
        });
        match written.await {
            Ok(true) => Ok(()),
            _ => Err(failed()),
        }
    }

    /// Logs an event without waiting.
    pub fn note(&self, event: Event) {
        if let Some(trail) = &self.trail {
            trail.send(event, |_| {});
        }
    }

    /// Logs that a client left the stream of a system before its end, and what was sent until then. `request` is the digest of the case.
    pub fn left(&self, who: &Who, request: String, sent: Sent) {
        if self.is_on() {
            let event = who.event("left").with("path", CHAT).with_sum("request", request);
            self.note(sent.told(event));
        }
    }

    /// Logs the end of the server, and prints the head of the chain.
    pub fn stop(&self) -> Result<(), ApiError> {
        match &self.trail {
            Some(trail) => trail.finish(Event::new("stop")).map_err(|_| failed()),
            None => Ok(()),
        }
    }

    /// Logs the models and systems, and the arguments they were loaded with.
    pub fn served(&self, served: &Served, arguments: &Value) {
        let model = |id: &str, fingerprint: &str| json!({"id": id, "fingerprint": fingerprint});
        let models = served.models.iter().map(|one| model(&one.id, &one.fingerprint));
        let encoders = served.encoders.iter();
        let models = models.chain(encoders.map(|one| model(&one.id, &one.fingerprint)));
        let systems = served.systems.iter().map(|one| model(&one.id, &one.fingerprint));
        let event = Event::new("config")
            .with("models", models.collect::<Vec<_>>())
            .with("systems", systems.collect::<Vec<_>>())
            .with("arguments", arguments.clone())
            .with("sandbox", served.sandbox.as_deref());
        self.note(event);
    }

    /// Logs the names of the current keys.
    pub fn keys(&self, keys: Option<&KeyRing>) {
        let name = |name: &str| name.to_owned();
        let names: Option<Vec<String>> = keys.map(|keys| keys.names().map(name).collect());
        self.note(Event::new("config").with("keys", json!(names)));
    }

    /// Logs that a case is begun. Blocks until the line is durable. Gives what joins it to the line of its outcome.
    pub fn begin_case(&self, ask: &Ask) -> Result<Option<String>, ApiError> {
        let Some(trail) = &self.trail else { return Ok(None) };
        let call = random_name().map_err(|_| failed())?;
        let input = Input::from(json!(ItemText::from(&ask.item)));
        let event = ask
            .who
            .event("begun")
            .with("call", call.as_str())
            .with("system", ask.system.id.as_str())
            .with("fingerprint", ask.system.fingerprint.as_str())
            .with("seed", ask.seed)
            .with_sum("request", ask.digest())
            .with_sum_of(&input);
        trail.write(event).map_err(|_| failed())?;
        Ok(Some(call))
    }

    /// Logs the outcome of a case without its text, and the text as far as the trail keeps it. Blocks until the line is durable.
    pub fn case(
        &self,
        call: Option<&str>,
        ask: &Ask,
        outcome: &Result<Worked, ApiError>,
        elapsed_ms: u64,
    ) -> Result<(), ApiError> {
        let Some(trail) = &self.trail else { return Ok(()) };
        let mut more = Map::new();
        let output = match outcome {
            Ok(worked) => {
                more.insert("line".to_owned(), words::record(&worked.line));
                more.insert("searches".to_owned(), json!(worked.searches));
                more.insert("seats".to_owned(), ask.system.seats().into());
                more.insert("synthetic".to_owned(), ask.system.is_synthetic.into());
                more.insert("tokens".to_owned(), tokens(&worked.calls));
                words::outcome(&ask.item, worked)
            }
            Err(error) => error.json(),
        };
        let told = CaseLine {
            system: &ask.system.id,
            fingerprint: Some(&ask.system.fingerprint),
            seed: ask.seed,
            run: ask.run,
            elapsed_ms,
            status: outcome.as_ref().map_or_else(|error| error.code.name(), |_| "done"),
            item: ask.item.id(),
        };
        let event = ask.who.event("case").with("call", call);
        let event = event.with_sum("request", ask.digest());
        let event = event.with_texts(Texts {
            input: json!(ItemText::from(&ask.item)).into(),
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
}

fn failed() -> ApiError {
    let message = "the audit trail could not be written, and nothing is served without it";
    ApiError::new(Code::AuditFailed, message).retry_after(60)
}
