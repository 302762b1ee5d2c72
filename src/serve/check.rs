//! `POST /v1/check`: one note, checked by a system.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::app::App;
use super::audit::Who;
use super::body::Sent;
use super::case::{Ask, SystemAnswer, question, words};
use super::error::ApiError;
use super::guard::{Asking, Caller};
use super::request::fields::{Seed, request};
use super::response::events::finish;
use super::response::reply::Usage;
use crate::experiment::case::Worked;
use crate::record::Language;

/// Unknown fields are mistakes at an endpoint of our own.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CheckRequest {
    text: String,
    system: Option<String>,
    seed: Option<Seed>,
    language: Option<String>,
}

pub async fn check(
    State(app): State<Arc<App>>,
    Asking { caller, who }: Asking,
    sent: Sent,
) -> Result<Json<Value>, ApiError> {
    let begin = move |app: &App, body: &[u8], caller: Option<&Caller>| {
        SystemAnswer::begin(app, read_note(app, body, who)?, &[], caller)
    };
    let (mut answering, ..) = sent.read(&app, caller, begin).await?;
    finish(&app, &mut answering).await?;
    let worked = answering.outcomes.first().and_then(Option::as_ref);
    Ok(Json(worked.map(|worked| result(&answering.ask, worked)).unwrap_or_default()))
}

fn read_note(app: &App, body: &[u8], who: Who) -> Result<Ask, ApiError> {
    let CheckRequest { text, system, seed, language } = request(body)?;
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
