//! What a server tells of itself: health, and what its engines do in Prometheus' text format, with vLLM's names behind a prefix of our own.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::app::App;
use super::error::ApiError;
use super::models::ServedModel;
use crate::engine::EngineSnapshot;

/// A metric of engines: its name, its kind, and its value.
type OfEngine = (&'static str, &'static str, fn(&EngineSnapshot) -> f64);

/// What an engine tells of itself; counters count since its start.
const OF_ENGINES: [OfEngine; 8] = [
    ("num_requests_running", "gauge", |now| now.running as f64),
    ("num_requests_waiting", "gauge", |now| now.waiting as f64),
    ("kv_cache_usage_perc", "gauge", |now| now.pages_in_use as f64 / now.stats.pages.max(1) as f64),
    ("prompt_tokens_total", "counter", |now| now.stats.counts.prompt_tokens as f64),
    ("generation_tokens_total", "counter", |now| {
        (now.stats.sampled_tokens + now.stats.forced_tokens) as f64
    }),
    ("prefix_cache_queries_total", "counter", |now| now.stats.counts.prompt_tokens as f64),
    ("prefix_cache_hits_total", "counter", |now| now.stats.counts.cached_tokens as f64),
    ("num_preemptions_total", "counter", |now| now.stats.counts.preemptions as f64),
];

/// How long to wait for an engine's state between two steps; after that it is left out.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(1);

pub async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.served()?;
    Ok(Json(json!({"status": "ok"})))
}

pub async fn metrics(State(app): State<Arc<App>>) -> Response {
    let mut engines = Vec::new();
    for model in app.loaded().iter().flat_map(|served| &served.models) {
        engines.extend(snapshot(model).await.map(|now| (json!(model.entry.id), now)));
    }
    let mut text = String::new();
    for (name, kind, of) in OF_ENGINES {
        text += &format!("# TYPE wardround:{name} {kind}\n");
        for (model, now) in &engines {
            let labels = format!("model_name={model},engine=\"0\"");
            text += &format!("wardround:{name}{{{labels}}} {}\n", of(now));
        }
    }
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")], text).into_response()
}

/// The state of a model's engine, if it reports it in time.
async fn snapshot(model: &ServedModel) -> Option<EngineSnapshot> {
    let (sender, receiver) = oneshot::channel();
    // The receiver may have timed out.
    let tell = Box::new(move |now| drop(sender.send(now)));
    model.backbone.engine.request_snapshot(tell).ok()?;
    timeout(SNAPSHOT_PATIENCE, receiver).await.ok()?.ok()
}
