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
use super::encoding::OfTexts;
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
    const HEALTH: &str = "Whether requests are answered now";
    vec![
        Route::get("/health", Public, status::health).says(HEALTH).gives(JSON, &[]),
        Route::get("/v1/health", Public, status::health).says(HEALTH).gives(JSON, &[]),
        Route::get("/live", Public, status::live).says("Whether the process lives"),
        Route::get("/version", Public, status::version)
            .says("The program's version")
            .gives(JSON, &[]),
        Route::get("/metrics", Metrics, status::metrics)
            .says("Metrics for Prometheus")
            .gives("application/openmetrics-text", &[]),
        Route::get("/openapi.json", Public, description).says("This description").gives(JSON, &[]),
        Route::get("/v1/models", Api, models::list)
            .also("/models")
            .says("The models and systems that answer")
            .gives(JSON, &[of::<ModelList>]),
        Route::get("/v1/models/{*id}", Api, models::one)
            .also("/models/{*id}")
            .says("One of them")
            .gives(JSON, &[of::<ModelEntry>]),
        Route::post("/v1/chat/completions", Api, completion::chat)
            .also("/chat/completions")
            .says("The answer to a chat")
            .takes(JSON, &[of::<ChatRequest>, of::<Turn>, of::<Decoding>, of::<Formats>])
            .gives(JSON, &[of::<Reply>])
            .gives(EVENTS, &[of::<Reply>]),
        Route::post("/v1/completions", Api, completion::complete)
            .also("/completions")
            .says("What follows a text")
            .takes(JSON, &[of::<CompletionRequest>, of::<Decoding>, of::<Formats>])
            .gives(JSON, &[of::<Reply>])
            .gives(EVENTS, &[of::<Reply>]),
        Route::post(embeddings::PATH, Api, embeddings::embed)
            .also("/embeddings")
            .says("Vectors of texts")
            .takes(JSON, &[of::<EmbeddingRequest>])
            .gives(JSON, &[of::<OfTexts<Embeddings>>]),
        Route::post(rerank::PATH, Api, rerank::rerank)
            .also("/v2/rerank")
            .also("/rerank")
            .says("Documents in the order in which they answer a query")
            .takes(JSON, &[of::<RerankRequest>])
            .gives(JSON, &[of::<OfTexts<Ranking>>]),
        Route::post("/tokenize", Api, tokenize::tokenize)
            .says("Tokens of a text or a chat")
            .takes(JSON, &[of::<tokenize::TokenizeRequest>, of::<Turn>])
            .gives(JSON, &[of::<tokenize::Tokens>]),
        Route::post("/detokenize", Api, tokenize::detokenize)
            .says("The text of tokens")
            .takes(JSON, &[of::<tokenize::DetokenizeRequest>])
            .gives(JSON, &[of::<tokenize::Text>]),
        Route::post("/apply-template", Api, tokenize::apply_template)
            .says("The text that a chat becomes")
            .takes(JSON, &[of::<tokenize::TemplateRequest>, of::<Turn>])
            .gives(JSON, &[of::<tokenize::Text>]),
        Route::get("/tokenizer_info", Api, tokenize::info)
            .says("A model's tokenizer")
            .gives(JSON, &[of::<tokenize::TokenizerInfo>]),
        Route::post("/v1/check", Api, check::check)
            .says("Checks a note")
            .takes("text/plain", &[])
            .takes(JSON, &[of::<check::CheckRequest>])
            .gives(JSON, &[]),
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
