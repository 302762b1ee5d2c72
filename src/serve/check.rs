//! `POST /v1/check`: one note, checked by a system.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Query, State};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::body::Sent;
use super::case::{Ask, question, words};
use super::completion::unknown_field;
use super::error::{ApiError, Code};
use super::guard::Asking;
use super::request::address::Address;
use super::request::fields::{Fields, Seed, Whole, quoted, request};
use super::response::events::finish;
use super::response::reply::Usage;
use super::system_chat::{SystemAnswer, run_seed};
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

#[derive(Deserialize, JsonSchema)]
pub struct CheckRequest {
    text: String,
    system: Option<String>,
    seed: Option<Seed>,
    language: Option<String>,
    #[serde(flatten)]
    rest: Fields,
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
    let ask = Ask { who, ..ask };
    let mut answering = SystemAnswer::begin(&app, ask, None, &[], caller.as_ref())?;
    finish(&app, &mut answering).await?;
    Ok(Json(answering.first().map(|(ask, worked)| result(ask, worked)).unwrap_or_default()))
}

fn read_note(app: &App, kind: &str, bytes: Bytes, chosen: Chosen) -> Result<Ask, ApiError> {
    let CheckRequest { text, system, seed, language, rest } = match kind {
        "text/plain" => {
            let invalid = |_| ApiError::new(Code::InvalidValue, "the note is not UTF-8");
            let text = str::from_utf8(&bytes).map_err(invalid)?.to_owned();
            let Chosen { system, seed, language } = chosen;
            CheckRequest { text, system, seed: seed.map(Whole), language, rest: Fields::new() }
        }
        "application/json" if chosen == Chosen::default() => request(&bytes)?,
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
    // Unknown fields are mistakes at an endpoint of our own.
    if let Some(name) = rest.keys().next() {
        return Err(unknown_field(name));
    }
    let language = language.map(|name| name.parse::<Language>()).transpose().map_err(|_| {
        ApiError::invalid("language", format!("language is not one of {}", Language::names()))
    })?;
    let system = app.served()?.note_system(system.as_deref())?.clone();
    system.refuse_length(&text, "text")?;
    let item = question::note(&text, language, "text")?;
    Ask::new(system, item, run_seed(app, seed.map(|seed| seed.0 as u64))?, "text")
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
