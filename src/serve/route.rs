//! A route as a value: from a list of them follow the router, who may ask what, and the description of the API.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde_json::{Map, Value, json};

use super::app::App;
use super::error::{ApiError, Code, ErrorBody};
use super::guard;
use super::request::fields::quoted;

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

pub const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";

/// Makes the schema of a type.
type SchemaOf = fn(&mut SchemaGenerator) -> Schema;

/// The schema of a type in the description.
pub fn of<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// A body by its media type, with what it holds; nothing where that is not described.
type Content = (&'static str, &'static [SchemaOf]);

/// A path with its handlers, for those who may ask it; and what the description says of it.
pub struct Route {
    /// What follows the first is the same, and described there.
    paths: Vec<&'static str>,
    pub access: Access,
    method: &'static str,
    handlers: MethodRouter<Arc<App>>,
    summary: &'static str,
    takes: Vec<Content>,
    /// Nothing where it is some JSON.
    gives: Vec<Content>,
}

impl Route {
    /// A route that is read from.
    pub fn get<T: 'static>(
        path: &'static str,
        access: Access,
        summary: &'static str,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        let (paths, takes, gives) = (vec![path], Vec::new(), Vec::new());
        Route { paths, access, method: "get", handlers: get(handler), summary, takes, gives }
    }

    /// A route of the API that something is sent to.
    pub fn post<T: 'static>(
        path: &'static str,
        summary: &'static str,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        let (access, handlers) = (Access::Api, post(handler));
        let (paths, takes, gives) = (vec![path], Vec::new(), Vec::new());
        Route { paths, access, method: "post", handlers, summary, takes, gives }
    }

    /// The same under another path.
    pub fn also(mut self, path: &'static str) -> Route {
        self.paths.push(path);
        self
    }

    pub fn takes(mut self, media: &'static str, schema: &'static [SchemaOf]) -> Route {
        self.takes.push((media, schema));
        self
    }

    pub fn gives(mut self, media: &'static str, schema: &'static [SchemaOf]) -> Route {
        self.gives.push((media, schema));
        self
    }

    /// Its paths, with the guard that its access asks for.
    pub fn guarded(self, app: &Arc<App>) -> Router<Arc<App>> {
        let mut router = Router::new();
        for path in self.paths {
            router = router.route(path, self.handlers.clone());
        }
        guard::at(router.method_not_allowed_fallback(wrong_method), app, self.access)
    }

    /// Its path and what the description says of it.
    fn described(&self, generators: &mut [SchemaGenerator; 2]) -> Option<(String, Value)> {
        let [taken, given] = generators;
        let error = contents(&[(JSON, &[of::<ErrorBody>])], given);
        let gives: &[Content] = if self.gives.is_empty() { &[(JSON, &[])] } else { &self.gives };
        let answer = json!({"description": "OK", "content": contents(gives, given)});
        let responses =
            json!({"200": answer, "default": {"description": "An error", "content": error}});
        let mut described = json!({"summary": self.summary, "responses": responses});
        if self.access == Access::Public {
            described["security"] = json!([]);
        }
        if !self.takes.is_empty() {
            let content = contents(&self.takes, taken);
            described["requestBody"] = json!({"required": true, "content": content});
        }
        let path = self.paths.first()?.replace("{*", "{");
        let mut methods = json!({self.method: described});
        if path.contains("{id}") {
            let id =
                json!({"name": "id", "in": "path", "required": true, "schema": {"type": "string"}});
            methods["parameters"] = json!([id]);
        }
        Some((path, methods))
    }
}

fn contents(contents: &[Content], generator: &mut SchemaGenerator) -> Value {
    let mut body = |(media, schemas): &Content| {
        let parts: Vec<Schema> = schemas.iter().map(|schema| schema(generator)).collect();
        let schema = match parts.as_slice() {
            [] if media.ends_with("json") => json!({"type": "object"}),
            [] => json!({"type": "string"}),
            [one] => json!(one),
            several => json!({"allOf": several}),
        };
        ((*media).to_owned(), json!({"schema": schema}))
    };
    contents.iter().map(&mut body).collect()
}

/// The OpenAPI document of routes, whose schemas are those of the types that are read and written.
pub fn described<'a>(routes: impl IntoIterator<Item = &'a Route>) -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    let mut generators =
        [settings.clone().into_generator(), settings.for_serialize().into_generator()];
    let described = routes.into_iter().filter_map(|route| route.described(&mut generators));
    let paths: Map<String, Value> = described.collect();
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

/// The router adds the header `allow`, which names the methods of the path.
async fn wrong_method(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let message =
        format!("{path} does not take {}; the header `allow` says what it takes", request.method());
    ApiError::new(Code::MethodNotAllowed, message).into_response()
}
