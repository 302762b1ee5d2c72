//! The endpoints about the server: health, version, metrics, models.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::app::App;
use super::error::{ApiError, Code};
use super::models::ServedModel;
use super::request::address::Address;

/// How long to wait for an engine's state between two steps; after that its last figures are used.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(1);

pub async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.served()?;
    Ok(Json(json!({"status": "ok"})))
}

pub async fn live() -> StatusCode {
    StatusCode::OK
}

pub async fn version() -> Json<Value> {
    Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}

pub async fn models(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    let served = app.served()?;
    let models = served.models.iter().map(|model| model.entry(app.created));
    let systems = served.systems.iter().map(|system| system.entry(app.created));
    let encoders = served.encoders.iter().map(|encoder| encoder.entry(app.created));
    let data: Vec<Value> = models.chain(systems).chain(encoders).collect();
    let more = json!({"sandbox": served.sandbox});
    Ok(Json(json!({"object": "list", "data": data, "wardround": more})))
}

pub async fn model(
    State(app): State<Arc<App>>,
    Address(Path(id)): Address<Path<String>>,
) -> Result<Json<Value>, ApiError> {
    let served = app.served()?;
    if let Some(system) = served.system(&id) {
        return Ok(Json(system.entry(app.created)));
    }
    if let Some(encoder) = served.encoders.iter().find(|encoder| encoder.id == id) {
        return Ok(Json(encoder.entry(app.created)));
    }
    Ok(Json(served.find(Some(&id))?.entry(app.created)))
}

pub async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    for model in app.loaded().iter().flat_map(|served| &served.models) {
        refresh(model).await;
    }
    let text =
        app.metrics.text().map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Updates the metrics of a model, if its engine reports its state in time.
async fn refresh(model: &ServedModel) {
    let (sender, receiver) = oneshot::channel();
    let tell = Box::new(move |snapshot| {
        // The receiver may have timed out.
        let _ = sender.send(snapshot);
    });
    if model.backbone.engine.request_snapshot(tell).is_err() {
        return;
    }
    if let Ok(Ok(snapshot)) = timeout(SNAPSHOT_PATIENCE, receiver).await {
        model.metrics.engine(&snapshot);
    }
}
