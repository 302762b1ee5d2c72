//! The endpoints of the API as values: from a list of them follow the router, who may ask what, and the description of the API.

use std::sync::Arc;

use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use axum::{Json, Router};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};
use tower::Layer;
use tower_http::normalize_path::NormalizePathLayer;

use super::app::App;
use super::encoders::OfTexts;
use super::error::{ApiError, Code, ErrorBody};
use super::models::{ModelEntry, ModelList};
use super::request::chat::ChatRequest;
use super::request::completions::CompletionRequest;
use super::request::decoding::Decoding;
use super::request::fields::quoted;
use super::response::reply::Reply;
use super::texts::{EmbeddingRequest, Embeddings, Ranking, RerankRequest};
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

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type in the description.
fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A path with its handlers, for those who may ask it; and what the description says of it.
struct Route {
    path: &'static str,
    /// Other paths to the same, which are not described.
    also: &'static [&'static str],
    access: Access,
    method: &'static str,
    handlers: MethodRouter<Arc<App>>,
    summary: &'static str,
    /// The parts of the body that is sent.
    takes: &'static [SchemaOf],
    gives: Option<SchemaOf>,
}

/// The endpoints of the API. To add one, add it here.
fn api() -> Vec<Route> {
    use Access::{Api, Metrics, Public};
    vec![
        Route::get("/health", Public, "Whether requests are answered now", metrics::health)
            .also(&["/v1/health"]),
        Route::get("/live", Public, "Whether the process lives", metrics::live),
        Route::get("/version", Public, "The program's version", metrics::version),
        Route::get("/metrics", Metrics, "Metrics for Prometheus", metrics::metrics),
        Route::get("/openapi.json", Public, "This description", description),
        Route::get("/v1/models", Api, "The models and systems that answer", models::list)
            .also(&["/models"])
            .gives(of::<ModelList>),
        Route::get("/v1/models/{*id}", Api, "One of them", models::one)
            .also(&["/models/{*id}"])
            .gives(of::<ModelEntry>),
        Route::post("/v1/chat/completions", "The answer to a chat", completion::chat)
            .also(&["/chat/completions"])
            .takes(&[of::<ChatRequest>, of::<Decoding>])
            .gives(of::<Reply>),
        Route::post("/v1/completions", "What follows a text", completion::complete)
            .also(&["/completions"])
            .takes(&[of::<CompletionRequest>, of::<Decoding>])
            .gives(of::<Reply>),
        Route::post("/v1/embeddings", "Vectors of texts", texts::embed)
            .also(&["/embeddings"])
            .takes(&[of::<EmbeddingRequest>])
            .gives(of::<OfTexts<Embeddings>>),
        Route::post(
            "/v1/rerank",
            "Documents in the order in which they answer a query",
            texts::rerank,
        )
        .also(&["/v2/rerank", "/rerank"])
        .takes(&[of::<RerankRequest>])
        .gives(of::<OfTexts<Ranking>>),
        Route::post("/tokenize", "Tokens of a text", completion::tokenize)
            .takes(&[of::<completion::TokenizeRequest>])
            .gives(of::<completion::Tokens>),
        Route::post("/detokenize", "The text of tokens", completion::detokenize)
            .takes(&[of::<completion::DetokenizeRequest>])
            .gives(of::<completion::Text>),
        Route::get("/tokenizer_info", Api, "A model's tokenizer", completion::info)
            .gives(of::<completion::TokenizerInfo>),
        Route::post("/v1/check", "Checks a note", case::check).takes(&[of::<case::CheckRequest>]),
    ]
}

impl Route {
    /// A route that is read from.
    fn get<T: 'static>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        let (handlers, method) = (get(handler), "get");
        Route { path, also: &[], access, method, handlers, summary, takes: &[], gives: None }
    }

    /// A route of the API that something is sent to.
    fn post<T: 'static>(
        path: &'static str,
        summary: &'static str,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        let (handlers, method, access) = (post(handler), "post", Access::Api);
        Route { path, also: &[], access, method, handlers, summary, takes: &[], gives: None }
    }

    fn also(self, also: &'static [&'static str]) -> Route {
        Route { also, ..self }
    }

    fn takes(self, takes: &'static [SchemaOf]) -> Route {
        Route { takes, ..self }
    }

    fn gives(self, schema: SchemaOf) -> Route {
        Route { gives: Some(schema), ..self }
    }

    /// Its path and what the description says of it.
    fn described(&self, [taken, given]: &mut [SchemaGenerator; 2]) -> (String, Value) {
        let content = |schema: Value| json!({"application/json": {"schema": schema}});
        let mut answer = json!({"description": "OK"});
        if let Some(schema) = self.gives {
            answer["content"] = content(json!(schema(given)));
        }
        let error = content(json!(of::<ErrorBody>(given)));
        let error = json!({"description": "An error", "content": error});
        let responses = json!({"200": answer, "default": error});
        let mut described = json!({"summary": self.summary, "responses": responses});
        if self.access == Access::Public {
            described["security"] = json!([]);
        }
        if !self.takes.is_empty() {
            let parts: Vec<Schema> = self.takes.iter().map(|schema| schema(taken)).collect();
            let content = content(json!({"allOf": parts}));
            described["requestBody"] = json!({"required": true, "content": content});
        }
        let path = self.path.replace("{*", "{");
        let mut methods = json!({self.method: described});
        if path.contains("{id}") {
            let id =
                json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
            methods["parameters"] = json!([id]);
        }
        (path, methods)
    }
}

/// All routes, each behind the guard of its access, and the middleware of all. A trailing slash is ignored.
pub fn router(app: &Arc<App>) -> Router {
    let unknown = Router::new().fallback(unknown_url);
    let mut routes = guard::at(unknown, app, Access::Api);
    for Route { path, also, handlers, access, .. } in api() {
        let paths = also.iter().copied().chain([path]);
        let own = paths.fold(Router::new(), |own, path| own.route(path, handlers.clone()));
        let own = own.method_not_allowed_fallback(wrong_method);
        routes = routes.merge(guard::at(own, app, access));
    }
    let guarded = guard::around(routes.with_state(app.clone()), app);
    Router::new().fallback_service(NormalizePathLayer::trim_trailing_slash().layer(guarded))
}

/// The OpenAPI document of routes, whose schemas are those of the types that are read and written.
fn described(routes: &[Route]) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generators =
        [settings.clone().into_generator(), settings.for_serialize().into_generator()];
    let paths: Map<String, Value> =
        routes.iter().map(|route| route.described(&mut generators)).collect();
    let schemas = generators.iter_mut().flat_map(|one| one.take_definitions(true));
    let schemas: Map<String, Value> = schemas.collect();
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "wardround",
            "version": "1",
            "description": "An OpenAI-compatible interface: equal requests to servers of one fingerprint get equal bytes.",
        },
        "security": [{"bearer": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"bearer": {"type": "http", "scheme": "bearer"}},
            "schemas": schemas,
        },
    })
}

async fn description() -> Json<Value> {
    Json(described(&api()))
}

async fn unknown_url(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let message = format!("there is no {path}; /openapi.json lists what there is");
    ApiError::new(Code::UnknownUrl, message).into_response()
}

/// The router adds the header `allow`, which names the methods of the path.
async fn wrong_method(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let message =
        format!("{path} does not take {}; the header `allow` says what it takes", request.method());
    ApiError::new(Code::MethodNotAllowed, message).into_response()
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
            let document = described(std::slice::from_ref(&route));
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
