//! The routes of the API.

use std::sync::Arc;

use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use axum::{Json, Router};
use serde_json::Value;
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::app::App;
use super::error::{ApiError, Code};
use super::route::{Access, EVENTS, JSON, Route, described};
use super::{check, completion, embeddings, guard, rerank, status, tokenize};

/// What the description says of the whole, and its schemas; its paths are those of [`api`].
const DESCRIPTION: &str = include_str!("openapi.json");

/// The endpoints of the API. To add one, add it here, and its schemas to `openapi.json`.
fn api() -> Vec<Route> {
    use Access::{Api, Metrics, Public};
    const HEALTH: &str = "Whether requests are answered now";
    vec![
        Route::get("/health", Public, status::health).says(HEALTH).gives(JSON, Some("Status")),
        Route::get("/v1/health", Public, status::health).says(HEALTH).gives(JSON, Some("Status")),
        Route::get("/live", Public, status::live).says("Whether the process lives"),
        Route::get("/version", Public, status::version)
            .says("The program's version")
            .gives(JSON, Some("Version")),
        Route::get("/metrics", Metrics, status::metrics)
            .says("Metrics for Prometheus")
            .gives("application/openmetrics-text", None),
        Route::get("/openapi.json", Public, description).says("This description").gives(JSON, None),
        Route::get("/v1/models", Api, status::models)
            .also("/models")
            .says("The models and systems that answer")
            .gives(JSON, Some("ModelList")),
        Route::get("/v1/models/{*id}", Api, status::model)
            .also("/models/{*id}")
            .says("One of them")
            .gives(JSON, Some("Model")),
        Route::post("/v1/chat/completions", Api, completion::chat)
            .also("/chat/completions")
            .says("The answer to a chat")
            .takes(JSON, Some("ChatRequest"))
            .gives(JSON, Some("ChatCompletion"))
            .gives(EVENTS, Some("ChatChunk")),
        Route::post("/v1/completions", Api, completion::complete)
            .also("/completions")
            .says("What follows a text")
            .takes(JSON, Some("TextRequest"))
            .gives(JSON, Some("TextCompletion"))
            .gives(EVENTS, Some("TextCompletion")),
        Route::post(embeddings::PATH, Api, embeddings::embed)
            .also("/embeddings")
            .says("Vectors of texts")
            .takes(JSON, Some("EmbeddingRequest"))
            .gives(JSON, Some("EmbeddingList")),
        Route::post(rerank::PATH, Api, rerank::rerank)
            .also("/v2/rerank")
            .also("/rerank")
            .says("Documents in the order in which they answer a query")
            .takes(JSON, Some("RerankRequest"))
            .gives(JSON, Some("Ranking")),
        Route::post("/tokenize", Api, tokenize::tokenize)
            .says("Tokens of a text or a chat")
            .takes(JSON, None)
            .gives(JSON, Some("Tokens")),
        Route::post("/detokenize", Api, tokenize::detokenize)
            .says("The text of tokens")
            .takes(JSON, None)
            .gives(JSON, Some("Text")),
        Route::post("/apply-template", Api, tokenize::apply_template)
            .says("The text that a chat becomes")
            .takes(JSON, None)
            .gives(JSON, Some("Text")),
        Route::get("/tokenizer_info", Api, tokenize::info)
            .says("A model's tokenizer")
            .gives(JSON, Some("TokenizerInfo")),
        Route::post("/v1/check", Api, check::check)
            .says("Checks a note")
            .takes("text/plain", None)
            .takes(JSON, Some("CheckRequest"))
            .gives(JSON, Some("Finding")),
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

async fn description() -> Result<Json<Value>, ApiError> {
    let whole = serde_json::from_str::<Value>(DESCRIPTION);
    let mut whole = whole.map_err(|error| ApiError::new(Code::Internal, error.to_string()))?;
    whole["paths"] = described(&api());
    Ok(Json(whole))
}

async fn unknown_url(request: Request) -> Response {
    let path = super::request::fields::quoted(request.uri().path());
    let message = format!("there is no {path}; /openapi.json lists what there is");
    ApiError::new(Code::UnknownUrl, message).into_response()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

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
            let Value::Object(paths) = described([&route]) else { panic!("no object") };
            for (path, methods) in paths {
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

    #[test]
    fn every_schema_that_is_named_is_there_and_each_is_used() {
        let whole: Value = serde_json::from_str(DESCRIPTION).unwrap();
        let schemas = whole["components"]["schemas"].as_object().unwrap();
        let text = described(&api()).to_string() + &whole.to_string();
        let named: BTreeSet<&str> = text
            .split("#/components/schemas/")
            .skip(1)
            .filter_map(|rest| rest.split('"').next())
            .collect();
        assert_eq!(named, schemas.keys().map(String::as_str).collect());
    }
}
