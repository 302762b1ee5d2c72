//! The endpoints of the API, each behind the guard of those who may ask it.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::app::App;
use super::error::{ApiError, Code};
use super::request::fields::quoted;
use super::{case, completion, guard, metrics, models, texts};

/// Who may ask a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Public,
    /// Whoever reads metrics.
    Metrics,
    /// Whoever uses models and systems; also what there is not.
    Api,
}

/// All routes. A trailing slash is ignored. docs/serving.md has a table of them, which a test asks for.
pub fn router(app: &Arc<App>) -> Router {
    let public =
        Router::new().route("/health", get(metrics::health)).route("/live", get(metrics::live));
    let watched = Router::new().route("/metrics", get(metrics::metrics));
    let api = Router::new()
        .route("/v1/models", get(models::list))
        .route("/v1/models/{*id}", get(models::one))
        .route("/v1/chat/completions", post(completion::chat))
        .route("/v1/completions", post(completion::complete))
        .route("/v1/embeddings", post(texts::embed))
        .route("/v1/rerank", post(texts::rerank))
        .route("/v2/rerank", post(texts::rerank))
        .route("/v1/check", post(case::check))
        .route("/tokenize", post(completion::tokenize))
        .route("/detokenize", post(completion::detokenize))
        .route("/tokenizer_info", get(completion::info))
        .fallback(unknown_url);
    let routes = [(public, Access::Public), (watched, Access::Metrics), (api, Access::Api)]
        .into_iter()
        .map(|(routes, access)| {
            guard::at(routes.method_not_allowed_fallback(wrong_method), app, access)
        })
        .fold(Router::new(), Router::merge);
    let guarded = guard::around(routes.with_state(app.clone()), app);
    Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(guarded))
}

async fn unknown_url(request: Request) -> Response {
    let message = format!("there is no {}", quoted(request.uri().path()));
    ApiError::new(Code::UnknownUrl, message).into_response()
}

/// The router adds the header `allow`, which names the methods of the path.
async fn wrong_method(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let message =
        format!("{path} does not take {}; the header `allow` says what it takes", request.method());
    ApiError::new(Code::MethodNotAllowed, message).into_response()
}
