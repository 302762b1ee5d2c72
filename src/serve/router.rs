//! The endpoints of the API, behind the guard and what every response gets.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower_http::catch_panic::CatchPanicLayer;

use super::app::App;
use super::error::{ApiError, Code};
use super::request::fields::quoted;
use super::{body, case, completion, embeddings, guard, metrics, models};

/// All routes; [`guard`] says who may ask each. The layer that is added last runs first. docs/serving.md has a
/// table of them, which a test asks for.
pub fn router(app: &Arc<App>) -> Router {
    Router::new()
        .route("/health", get(metrics::health))
        .route("/metrics", get(metrics::metrics))
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(completion::chat))
        .route("/v1/completions", post(completion::complete))
        .route("/v1/embeddings", post(embeddings::embed))
        .route("/v1/check", post(case::check))
        .route("/tokenize", post(completion::tokenize))
        .route("/tokenizer_info", get(completion::info))
        .fallback(unknown_url)
        .method_not_allowed_fallback(wrong_method)
        .layer(from_fn_with_state(app.clone(), body::hold))
        .layer(from_fn_with_state(app.clone(), guard::check))
        .layer(CatchPanicLayer::custom(|_panic| ApiError::failed().into_response()))
        .layer(from_fn(guard::finish))
        .with_state(app.clone())
}

async fn unknown_url(request: Request) -> Response {
    let message = format!("there is no {}; a base URL ends in /v1", quoted(request.uri().path()));
    ApiError::new(Code::UNKNOWN_URL, message).into_response()
}

/// The router adds the header `allow`, which names the methods of the path.
async fn wrong_method(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let message =
        format!("{path} does not take {}; the header `allow` says what it takes", request.method());
    ApiError::new(Code::METHOD_NOT_ALLOWED, message).into_response()
}
