//! The routes of the API.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::Value;
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::app::App;
use super::embeddings::{EmbeddingRequest, Embeddings};
use super::encoders::OfTexts;
use super::error::{ApiError, Code};
use super::models::{ModelEntry, ModelList};
use super::request::chat::{ChatRequest, Turn};
use super::request::completions::CompletionRequest;
use super::request::decoding::Decoding;
use super::request::format::Formats;
use super::rerank::{Ranking, RerankRequest};
use super::response::reply::Reply;
use super::route::{Access, EVENTS, JSON, Route, described, of};
use super::{check, completion, embeddings, guard, models, rerank, status, tokenize};

/// The endpoints of the API. To add one, add it here.
fn api() -> Vec<Route> {
    use Access::{Api, Metrics, Public};
    vec![
        Route::get("/health", Public, "Whether requests are answered now", status::health)
            .also("/v1/health"),
        Route::get("/live", Public, "Whether the process lives", status::live),
        Route::get("/version", Public, "The program's version", status::version),
        Route::get("/metrics", Metrics, "Metrics for Prometheus", status::metrics)
            .gives("application/openmetrics-text", &[]),
        Route::get("/openapi.json", Public, "This description", description),
        Route::get("/v1/models", Api, "The models and systems that answer", models::list)
            .also("/models")
            .gives(JSON, &[of::<ModelList>]),
        Route::get("/v1/models/{*id}", Api, "One of them", models::one)
            .also("/models/{*id}")
            .gives(JSON, &[of::<ModelEntry>]),
        Route::post("/v1/chat/completions", "The answer to a chat", completion::chat)
            .also("/chat/completions")
            .takes(JSON, &[of::<ChatRequest>, of::<Turn>, of::<Decoding>, of::<Formats>])
            .gives(JSON, &[of::<Reply>])
            .gives(EVENTS, &[of::<Reply>]),
        Route::post("/v1/completions", "What follows a text", completion::complete)
            .also("/completions")
            .takes(JSON, &[of::<CompletionRequest>, of::<Decoding>, of::<Formats>])
            .gives(JSON, &[of::<Reply>])
            .gives(EVENTS, &[of::<Reply>]),
        Route::post(embeddings::PATH, "Vectors of texts", embeddings::embed)
            .also("/embeddings")
            .takes(JSON, &[of::<EmbeddingRequest>])
            .gives(JSON, &[of::<OfTexts<Embeddings>>]),
        Route::post(
            rerank::PATH,
            "Documents in the order in which they answer a query",
            rerank::rerank,
        )
        .also("/v2/rerank")
        .also("/rerank")
        .takes(JSON, &[of::<RerankRequest>])
        .gives(JSON, &[of::<OfTexts<Ranking>>]),
        Route::post("/tokenize", "Tokens of a text", tokenize::tokenize)
            .takes(JSON, &[of::<tokenize::TokenizeRequest>])
            .gives(JSON, &[of::<tokenize::Tokens>]),
        Route::post("/detokenize", "The text of tokens", tokenize::detokenize)
            .takes(JSON, &[of::<tokenize::DetokenizeRequest>])
            .gives(JSON, &[of::<tokenize::Text>]),
        Route::get("/tokenizer_info", Api, "A model's tokenizer", tokenize::info)
            .gives(JSON, &[of::<tokenize::TokenizerInfo>]),
        Route::post("/v1/check", "Checks a note", check::check)
            .takes(JSON, &[of::<check::CheckRequest>]),
    ]
}

/// All routes, each behind the guard of its access, and the middleware of all. A trailing slash is ignored.
pub fn router(app: &Arc<App>) -> Router {
    let unknown = Router::new().fallback(unknown_url);
    let mut routes = guard::at(unknown, app, Access::Api);
    for route in api() {
        routes = routes.merge(route.guarded(app));
    }
    let guarded = guard::around(routes.with_state(app.clone()), app);
    Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(guarded))
}

async fn description() -> Json<Value> {
    Json(described(&api()))
}

async fn unknown_url(request: Request) -> Response {
    let path = super::request::fields::quoted(request.uri().path());
    let message = format!("there is no {path}; /openapi.json lists what there is");
    ApiError::new(Code::UnknownUrl, message).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The endpoints as docs/serving.md lists them.
    fn table() -> String {
        let mut lines = "| endpoint | roles | |\n| --- | --- | --- |\n".to_owned();
        for route in api() {
            let roles = match route.access {
                Access::Public => "everyone",
                Access::Metrics => "`metrics`",
                Access::Api => "`api`",
            };
            let document = described([&route]);
            for (path, methods) in document["paths"].as_object().unwrap() {
                for method in ["get", "post"] {
                    if let Some(summary) = methods[method]["summary"].as_str() {
                        let method = method.to_uppercase();
                        lines += &format!("| `{method} {path}` | {roles} | {summary} |\n");
                    }
                }
            }
        }
        lines
    }

    #[test]
    fn the_page_on_serving_lists_every_endpoint() {
        let page = include_str!("../../docs/serving.md");
        let table = table();
        assert!(page.contains(&table), "docs/serving.md needs this table:\n{table}");
    }
}
