//! The endpoints of cases: check a note, ask a question, and get a case or its events.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;
use tokio::time::sleep;

use super::app::{App, Phase};
use super::audit::{self, Who};
use super::body::{Sent, WHOLE, blocking};
use super::case::pool::Job;
use super::case::store::{CaseHead, KeptCase, Named};
use super::case::words::{self, CallWords};
use super::case::{Ask, CaseEvent, Running, question};
use super::error::{ApiError, Code};
use super::guard::{Asking, Caller, Identity};
use super::request::address::Address;
use super::request::fields::{Fields, quoted, required};
use super::response::events::{EventSource, SILENCE, cut, respond, sign_of_life};
use super::system_chat::{run_seed, usage};
use crate::data::ItemKind;
use crate::experiment::case::Worked;
use crate::experiment::clock;
use crate::record::{ItemText, Language};

const PREFER: HeaderName = HeaderName::from_static("prefer");
const APPLIED: HeaderName = HeaderName::from_static("preference-applied");
const ASYNC: &str = "respond-async";

/// The query parameters of a request whose body is not JSON.
#[derive(Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    system: Option<String>,
    seed: Option<u64>,
    language: Option<String>,
}

/// `POST /v1/check`: a note as plain text or as JSON.
pub async fn check(
    State(app): State<Arc<App>>,
    Address(Query(chosen)): Address<Query<Chosen>>,
    Asking { caller, who }: Asking,
    sent: Sent<WHOLE>,
) -> Result<Response, ApiError> {
    app.served()?;
    let (headers, kind) = (sent.headers.clone(), sent.kind.clone());
    let reading = app.clone();
    let (ask, _) = sent.parse(move |bytes| read_note(&reading, &kind, bytes, chosen)).await?;
    answer(app, Ask { who, ..ask }, caller, &headers).await
}

fn read_note(app: &App, kind: &str, bytes: Bytes, chosen: Chosen) -> Result<Ask, ApiError> {
    match kind {
        "text/plain" => note_of(app, &text(bytes)?, chosen),
        "application/json" if chosen == Chosen::default() => {
            note_of_json(app, Fields::parse(&bytes)?)
        }
        "application/json" => {
            let message =
                "the body is JSON, which has these fields itself: leave out what follows `?`";
            Err(ApiError::new(Code::InvalidValue, message))
        }
        other => {
            let message = format!(
                "the content type is {}; expected text/plain or application/json",
                quoted(other)
            );
            Err(ApiError::new(Code::UnsupportedMediaType, message))
        }
    }
}

/// `POST /v1/ask`: a question with options.
pub async fn ask(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent<WHOLE>,
) -> Result<Response, ApiError> {
    app.served()?;
    let headers = sent.headers.clone();
    let reading = app.clone();
    let (ask, _) = sent.parse_json(move |bytes| read_question(&reading, &bytes)).await?;
    answer(app, Ask { who, ..ask }, caller, &headers).await
}

fn read_question(app: &App, body: &[u8]) -> Result<Ask, ApiError> {
    let mut fields = Fields::parse(body)?;
    let system = fields.text("system")?;
    let seed = fields.seed()?;
    let asked = required(fields.text("question")?, "question")?;
    let options = required(fields.take("options"), "options")?;
    refuse_others(fields)?;
    let system = app.served()?.system_for(ItemKind::Questions, system.as_deref())?.clone();
    let param = if asked.trim().is_empty() { "question" } else { "options" };
    let item = question::question(&asked, &options, param)?;
    Ask::new(system, item, run_seed(app, seed)?, "question")
}

fn text(bytes: Bytes) -> Result<String, ApiError> {
    String::from_utf8(bytes.into())
        .map_err(|_| ApiError::new(Code::InvalidValue, "the note is not UTF-8"))
}

fn note_of(app: &App, text: &str, chosen: Chosen) -> Result<Ask, ApiError> {
    let language = chosen.language.as_deref().map(language).transpose()?;
    let system = app.served()?.system_for(ItemKind::Notes, chosen.system.as_deref())?.clone();
    system.refuse_length(text, "text")?;
    let item = question::note(text, language, "text")?;
    Ask::new(system, item, run_seed(app, chosen.seed)?, "text")
}

fn note_of_json(app: &App, mut fields: Fields) -> Result<Ask, ApiError> {
    let chosen = Chosen {
        system: fields.text("system")?,
        seed: fields.seed()?,
        language: fields.text("language")?,
    };
    let text = required(fields.text("text")?, "text")?;
    refuse_others(fields)?;
    note_of(app, &text, chosen)
}

pub fn language(name: &str) -> Result<Language, ApiError> {
    name.parse().map_err(|_| {
        ApiError::invalid("language", format!("language is not one of {}", Language::names()))
    })
}

/// Refuses unknown fields, which are mistakes at these endpoints of our own.
fn refuse_others(fields: Fields) -> Result<(), ApiError> {
    match fields.rest().first() {
        None => Ok(()),
        Some(name) => Err(super::completion::unknown_field(name)),
    }
}

/// Responds with the outcome, or with `Prefer: respond-async` at once with the URL where it will be.
async fn answer(
    app: Arc<App>,
    ask: Ask,
    caller: Option<Caller>,
    headers: &HeaderMap,
) -> Result<Response, ApiError> {
    let preferences = headers.get_all(PREFER).into_iter().filter_map(|value| value.to_str().ok());
    let mut preferences = preferences.flat_map(|value| value.split([',', ';']));
    if preferences.any(|preference| preference.trim().eq_ignore_ascii_case(ASYNC)) {
        let id = keep(&app, ask, caller.as_ref()).await?;
        let place = HeaderValue::from_str(&format!("/v1/cases/{id}"))
            .map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
        let headers = [(header::LOCATION, place), (APPLIED, HeaderValue::from_static(ASYNC))];
        let body = Json(json!({"id": id, "status": "queued"}));
        return Ok((StatusCode::ACCEPTED, headers, body).into_response());
    }
    let outcome = worked(&app, &ask, caller.as_ref()).await?;
    let worked = Result::as_ref(&outcome).map_err(ApiError::clone)?;
    Ok(Json(result(&ask, worked)).into_response())
}

/// What becomes of a case that is waited for.
async fn worked(
    app: &App,
    ask: &Ask,
    caller: Option<&Caller>,
) -> Result<Arc<Result<Worked, ApiError>>, ApiError> {
    let mut running = Running::begin(app, vec![ask.clone()], caller)?;
    let mut phase = app.phase.clone();
    loop {
        let event = tokio::select! {
            event = running.next() => event,
            () = cut(&mut phase) => return Err(ApiError::draining()),
        };
        match event {
            Some((_, CaseEvent::Ended(outcome))) => return Ok(outcome),
            Some(_) => {}
            None => return Err(ApiError::new(Code::Internal, "the case was lost")),
        }
    }
}

/// Queues a case that is kept, and returns its id.
pub async fn keep(app: &App, ask: Ask, caller: Option<&Caller>) -> Result<String, ApiError> {
    let id = super::session::random_id()?;
    let head = CaseHead {
        id: id.clone(),
        owner: owner(caller),
        ask: ask.clone(),
        created_at: clock::utc_now(),
    };
    let store = &app.cases.store;
    store.open(head).await?;
    let job = Job::new(ask, Arc::default(), store.recorder(id.clone()), caller).kept_as(&id);
    match app.cases.submit(app, job) {
        Ok(()) => Ok(id),
        Err(error) => {
            store.close(id);
            Err(error)
        }
    }
}

/// The owner of a caller's cases.
pub fn owner(caller: Option<&Caller>) -> Option<Identity> {
    caller.map(Caller::identity)
}

/// The outcome of a case, and how it was made.
fn result(ask: &Ask, worked: &Worked) -> Value {
    let mut value = words::outcome(&ask.item, worked);
    // No part of what the trail keeps as the outcome, which is repeated without a policy.
    if let Some(decision) = &worked.decision {
        value["policy"] = json!(decision);
    }
    value["wardround"] = json!({
        "system": ask.system.id,
        "system_fingerprint": ask.system.fingerprint,
        "synthetic": ask.system.is_synthetic,
        // As it was asked for: the field takes negative numbers too.
        "seed": ask.seed as i64,
        "request": ask.digest(),
        "item": ask.item.id(),
        "usage": usage(std::iter::once(worked.usage)),
        "record": words::record(&worked.line),
    });
    value
}

/// `GET /v1/cases/{id}`: a whole case.
pub async fn case(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    Asking { caller, who }: Asking,
) -> Result<Response, ApiError> {
    let named = Named { id, owner: owner(caller.as_ref()) };
    let text = exported(&app, named, &who, |value| value.to_string()).await?;
    Ok(([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], text)
        .into_response())
}

/// A case as JSON in the form of `write`. Whoever gets it is in the trail before; it is made where it keeps nobody waiting.
pub async fn exported(
    app: &App,
    named: Named,
    who: &Who,
    write: fn(&Value) -> String,
) -> Result<String, ApiError> {
    let case = app.cases.store.look(named).await?;
    app.audit.tell(who.event("export").with("case", case.head.id.as_str())).await?;
    blocking(move || Ok(write(&export(&case)))).await
}

/// A case as JSON: its input, calls and outcome.
fn export(case: &KeptCase) -> Value {
    let KeptCase { head, calls, outcome, .. } = case;
    let ask = &head.ask;
    let ended = outcome.as_ref().map(|outcome| Result::as_ref(outcome));
    let calls: Vec<Value> = calls
        .iter()
        .map(|call| {
            let mut value = json!(**call);
            for name in ["seq", "prev", "hash"] {
                if let Some(fields) = value.as_object_mut() {
                    fields.shift_remove(name);
                }
            }
            value
        })
        .collect();
    let worked = ended.and_then(Result::ok);
    json!({
        "id": head.id,
        "status": status(case),
        "created_at": head.created_at,
        "system": ask.system.id,
        "system_fingerprint": ask.system.fingerprint,
        "seats": ask.system.seats(),
        "synthetic": ask.system.is_synthetic,
        // As it was asked for: the field takes negative numbers too.
        "seed": ask.seed as i64,
        "item": ItemText::from(&ask.item),
        "outcome": worked.map(|worked| result(ask, worked)),
        "error": ended.and_then(Result::err).map(|error| error.json()["error"].clone()),
        "calls": calls,
        "searches": worked.map(|worked| &worked.searches),
    })
}

pub fn status(case: &KeptCase) -> &'static str {
    match &case.outcome {
        None if case.has_begun => "running",
        None => "queued",
        Some(outcome) if outcome.is_ok() => "done",
        Some(_) => "error",
    }
}

/// `GET /v1/cases/{id}/events`: `call`, then `done` or `error`.
pub async fn events(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
    Asking { caller, who }: Asking,
) -> Result<Response, ApiError> {
    let named = Named { id, owner: owner(caller.as_ref()) };
    let case = app.cases.store.look(named.clone()).await?;
    let (sender, events) = unbounded_channel();
    app.cases.store.follow(named, sender).await?;
    let phase = app.phase.clone();
    let (ask, reader) = (case.head.ask.clone(), who);
    Ok(respond(Followed { app, ask, reader, events, phase, is_over: false }))
}

/// A case as a stream of events.
struct Followed {
    app: Arc<App>,
    ask: Ask,
    reader: Who,
    events: UnboundedReceiver<CaseEvent>,
    phase: watch::Receiver<Phase>,
    is_over: bool,
}

impl EventSource for Followed {
    async fn next(&mut self) -> Option<String> {
        while !self.is_over {
            let event = tokio::select! {
                event = self.events.recv() => event?,
                () = cut(&mut self.phase) => return None,
                () = sleep(SILENCE) => return Some(sign_of_life(true)),
            };
            let (name, value) = match event {
                CaseEvent::Begun => continue,
                CaseEvent::Call(call) => {
                    let words = CallWords::of(self.ask.system.takes(), &call);
                    let mut value = json!(words);
                    value["line"] = words.line().into();
                    value["text"] = call.text.as_str().into();
                    ("call", value)
                }
                CaseEvent::Ended(outcome) => {
                    self.is_over = true;
                    match outcome.as_ref() {
                        Ok(worked) => ("done", result(&self.ask, worked)),
                        Err(error) => ("error", error.json()),
                    }
                }
            };
            return Some(format!("event: {name}\ndata: {value}\n\n"));
        }
        None
    }

    fn left(&mut self, sent: audit::Sent) {
        if !self.is_over {
            self.app.audit.left(&self.reader, "/v1/cases/{id}/events", self.ask.digest(), sent);
        }
    }
}
