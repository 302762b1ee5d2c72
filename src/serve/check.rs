//! `POST /v1/check`: one note, checked by a system.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Sent;
use super::case::words;
use super::case::{Ask, CaseEvent, Running, question};
use super::completion::unknown_field;
use super::error::{ApiError, Code};
use super::guard::{Asking, Caller};
use super::request::address::Address;
use super::request::fields::{Fields, quoted, required};
use super::response::events::cut;
use super::system_chat::{run_seed, usage};
use crate::experiment::case::Worked;
use crate::record::Language;

/// The query parameters of a request whose body is not JSON.
#[derive(Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    system: Option<String>,
    seed: Option<u64>,
    language: Option<String>,
}

/// A note as plain text or as JSON.
pub async fn check(
    State(app): State<Arc<App>>,
    Address(Query(chosen)): Address<Query<Chosen>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Json<Value>, ApiError> {
    app.served()?;
    let kind = sent.kind.clone();
    let reading = app.clone();
    let (ask, _) = sent.parse(move |bytes| read_note(&reading, &kind, bytes, chosen)).await?;
    let worked = worked(&app, Ask { who, ..ask.clone() }, caller.as_ref()).await?;
    Ok(Json(result(&ask, &worked)))
}

fn read_note(app: &App, kind: &str, bytes: Bytes, chosen: Chosen) -> Result<Ask, ApiError> {
    match kind {
        "text/plain" => {
            let invalid = |_| ApiError::new(Code::InvalidValue, "the note is not UTF-8");
            note_of(app, str::from_utf8(&bytes).map_err(invalid)?, chosen)
        }
        "application/json" if chosen == Chosen::default() => note_of_json(app, &bytes),
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

fn note_of_json(app: &App, bytes: &[u8]) -> Result<Ask, ApiError> {
    let mut fields = Fields::parse(bytes)?;
    let chosen = Chosen {
        system: fields.text("system")?,
        seed: fields.seed()?,
        language: fields.text("language")?,
    };
    let text = required(fields.text("text")?, "text")?;
    // Unknown fields are mistakes at an endpoint of our own.
    match fields.rest().first() {
        None => note_of(app, &text, chosen),
        Some(name) => Err(unknown_field(name)),
    }
}

fn note_of(app: &App, text: &str, chosen: Chosen) -> Result<Ask, ApiError> {
    let language = chosen.language.as_deref().map(language).transpose()?;
    let system = app.served()?.note_system(chosen.system.as_deref())?.clone();
    system.refuse_length(text, "text")?;
    let item = question::note(text, language, "text")?;
    Ask::new(system, item, run_seed(app, chosen.seed)?, "text")
}

fn language(name: &str) -> Result<Language, ApiError> {
    name.parse().map_err(|_| {
        ApiError::invalid("language", format!("language is not one of {}", Language::names()))
    })
}

/// What becomes of a case.
async fn worked(app: &App, ask: Ask, caller: Option<&Caller>) -> Result<Worked, ApiError> {
    let mut running = Running::begin(app, vec![ask], caller)?;
    let mut phase = app.phase.clone();
    loop {
        let event = tokio::select! {
            event = running.next() => event,
            () = cut(&mut phase) => return Err(ApiError::draining()),
        };
        match event {
            Some((_, CaseEvent::Ended(outcome))) => return outcome,
            Some(_) => {}
            None => return Err(ApiError::new(Code::Internal, "the case was lost")),
        }
    }
}

/// The outcome of a case, and how it was made.
fn result(ask: &Ask, worked: &Worked) -> Value {
    let mut value = words::outcome(&ask.item, worked);
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
