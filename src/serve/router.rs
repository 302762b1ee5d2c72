//! The routes of the API and the page.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::app::App;
use super::error::{ApiError, Code};
use super::{check, completion, guard, page, status, tokenize};

/// All routes, behind the middleware. A trailing slash is ignored.
pub fn router(app: &Arc<App>) -> Router {
    let routes = Router::new()
        .route("/health", get(status::health))
        .route("/v1/health", get(status::health))
        .route("/live", get(status::live))
        .route("/version", get(status::version))
        .route("/metrics", get(status::metrics))
        .route("/openapi.json", get(status::openapi))
        .route("/v1/models", get(status::models))
        .route("/models", get(status::models))
        .route("/v1/models/{*id}", get(status::model))
        .route("/models/{*id}", get(status::model))
        .route("/v1/chat/completions", post(completion::chat))
        .route("/chat/completions", post(completion::chat))
        .route("/v1/completions", post(completion::complete))
        .route("/completions", post(completion::complete))
        .route("/tokenize", post(tokenize::tokenize))
        .route("/detokenize", post(tokenize::detokenize))
        .route("/tokenizer_info", get(tokenize::info))
        .route("/apply-template", post(tokenize::apply_template))
        .route("/v1/check", post(check::check))
        .route("/v1/ask", post(check::ask))
        .route("/v1/cases/{id}", get(check::case))
        .route("/v1/cases/{id}/events", get(check::events))
        .merge(page::routes())
        .fallback(unknown_url)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app.clone());
    let guarded = guard::around(routes, app);
    Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(guarded))
}

async fn unknown_url(State(_): State<Arc<App>>, request: Request) -> Response {
    let path = super::request::fields::quoted(request.uri().path());
    let message = format!("there is no {path}; /openapi.json lists what there is");
    ApiError::new(Code::UnknownUrl, message).into_response()
}

/// The router adds the header `allow`, which names the methods of the path.
async fn wrong_method(request: Request) -> Response {
    let path = super::request::fields::quoted(request.uri().path());
    let message =
        format!("{path} does not take {}; the header `allow` says what it takes", request.method());
    ApiError::new(Code::MethodNotAllowed, message).into_response()
}
