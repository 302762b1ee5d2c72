//! `POST /v1/check`: one note, checked by a system.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::audit::Who;
use super::body::Sent;
use super::case::{Ask, question, words};
use super::error::{ApiError, Code};
use super::guard::Asking;
use super::request::address::Address;
use super::request::fields::{Seed, Whole, quoted, request};
use super::response::events::finish;
use super::response::reply::Usage;
use super::system_chat::SystemAnswer;
use crate::experiment::case::Worked;
use crate::record::Language;

/// The query parameters of a request whose body is not JSON.
#[derive(Default, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Chosen {
    system: Option<String>,
    seed: Option<i64>,
    language: Option<String>,
}

/// Unknown fields are mistakes at an endpoint of our own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    text: String,
    system: Option<String>,
    seed: Option<Seed>,
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
    let (kind, reading) = (sent.kind.clone(), app.clone());
    let begin = move |bytes: Bytes| {
        let ask = read_note(&reading, &kind, &bytes, chosen, who)?;
        SystemAnswer::begin(&reading, ask, &[], caller.as_ref())
    };
    let (mut answering, _) = sent.parse(begin).await?;
    finish(&app, &mut answering).await?;
    let worked = answering.outcomes.first().and_then(Option::as_ref);
    Ok(Json(worked.map(|worked| result(&answering.ask, worked)).unwrap_or_default()))
}

fn read_note(
    app: &App,
    kind: &str,
    bytes: &[u8],
    chosen: Chosen,
    who: Who,
) -> Result<Ask, ApiError> {
    let CheckRequest { text, system, seed, language } = match kind {
        "text/plain" => {
            let invalid = |_| ApiError::new(Code::InvalidValue, "the note is not UTF-8");
            let text = str::from_utf8(bytes).map_err(invalid)?.to_owned();
            let Chosen { system, seed, language } = chosen;
            CheckRequest { text, system, seed: seed.map(Whole), language }
        }
        "application/json" if chosen == Chosen::default() => request(bytes)?,
        "application/json" => {
            let message =
                "the body is JSON, which has these fields itself: leave out what follows `?`";
            return Err(ApiError::new(Code::InvalidValue, message));
        }
        other => {
            let other = quoted(other);
            let message =
                format!("the content type is {other}; expected text/plain or application/json");
            return Err(ApiError::new(Code::UnsupportedMediaType, message));
        }
    };
    let language = language.map(|name| name.parse::<Language>()).transpose().map_err(|_| {
        ApiError::invalid("language", format!("language is not one of {}", Language::names()))
    })?;
    let system = app.served()?.note_system(system.as_deref())?.clone();
    system.refuse_length(&text, "text")?;
    let item = question::note(&text, language, "text")?;
    let (seed, n, param) = (app.seed(seed.map(|seed| seed.0 as u64))?, 1, "text");
    Ok(Ask { system, item, seed, n, param, who })
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
        "usage": Usage::of(worked.usage, 0),
        "record": words::record(&worked.line),
    });
    value
}
