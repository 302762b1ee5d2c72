//! The endpoints about the server: health, version, metrics.

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
use super::error::{ApiError, Code};
use super::models::ServedModel;

/// How long to wait for an engine's state between two steps; after that its last figures are used.
const SNAPSHOT_PATIENCE: Duration = Duration::from_secs(1);

pub async fn health(State(app): State<Arc<App>>) -> Result<Json<Value>, ApiError> {
    app.served()?;
    Ok(Json(json!({"status": "ok"})))
}

pub async fn live() -> Json<Value> {
    Json(json!({"status": "ok"}))
}

pub async fn version() -> Json<Value> {
    Json(json!({"version": env!("CARGO_PKG_VERSION")}))
}

pub async fn metrics(State(app): State<Arc<App>>) -> Result<Response, ApiError> {
    for model in app.loaded().iter().flat_map(|served| &served.models) {
        refresh(&app, model).await;
    }
    let text =
        app.metrics.text().map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Updates the metrics of a model, if its engine reports its state in time.
async fn refresh(app: &App, model: &ServedModel) {
    let (sender, receiver) = oneshot::channel();
    let tell = Box::new(move |snapshot| {
        // The receiver may have timed out.
        let _ = sender.send(snapshot);
    });
    if model.backbone.engine.request_snapshot(tell).is_err() {
        return;
    }
    if let Ok(Ok(snapshot)) = timeout(SNAPSHOT_PATIENCE, receiver).await {
        app.metrics.of_model(&model.id).engine(&snapshot);
    }
}
