//! A route as a value: from a list of them follow the router, who may ask what, and the description of the API.

use std::sync::Arc;

use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodRouter, get, post};
use serde_json::{Map, Value, json};

use super::app::App;
use super::error::{ApiError, Code};
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

/// A body by its media type, and the name of its schema; `None` where it has none.
type Content = (&'static str, Option<&'static str>);

/// A path with its handlers, for those who may ask it; and what the description says of it.
pub struct Route {
    /// What follows the first is the same, and described there.
    paths: Vec<&'static str>,
    pub access: Access,
    method: &'static str,
    handlers: MethodRouter<Arc<App>>,
    summary: &'static str,
    takes: Vec<Content>,
    /// None where it answers without a body.
    gives: Vec<Content>,
}

impl Route {
    /// A route of the API that is read from.
    pub fn get<T: 'static>(
        path: &'static str,
        access: Access,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        Route::new(path, access, "get", get(handler))
    }

    /// A route of the API that something is sent to.
    pub fn post<T: 'static>(
        path: &'static str,
        access: Access,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        Route::new(path, access, "post", post(handler))
    }

    fn new(
        path: &'static str,
        access: Access,
        method: &'static str,
        handlers: MethodRouter<Arc<App>>,
    ) -> Route {
        Route {
            paths: vec![path],
            access,
            method,
            handlers,
            summary: "",
            takes: Vec::new(),
            gives: Vec::new(),
        }
    }

    /// The same under another path.
    pub fn also(mut self, path: &'static str) -> Route {
        self.paths.push(path);
        self
    }

    pub fn says(mut self, summary: &'static str) -> Route {
        self.summary = summary;
        self
    }

    pub fn takes(mut self, media: &'static str, schema: Option<&'static str>) -> Route {
        self.takes.push((media, schema));
        self
    }

    pub fn gives(mut self, media: &'static str, schema: Option<&'static str>) -> Route {
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
    fn described(&self) -> Option<(String, Value)> {
        let mut described = json!({"summary": self.summary, "responses": self.responses()});
        if self.access == Access::Public {
            described["security"] = json!([]);
        }
        if !self.takes.is_empty() {
            described["requestBody"] = json!({"required": true, "content": contents(&self.takes)});
        }
        let path = self.paths.first()?.replace("{*", "{");
        let mut methods = json!({self.method: described});
        let names = path.split('{').skip(1).filter_map(|rest| rest.split('}').next());
        let parameters: Vec<Value> = names
            .map(|name| json!({"name": name, "in": "path", "required": true, "schema": {"type": "string"}}))
            .collect();
        if !parameters.is_empty() {
            methods["parameters"] = parameters.into();
        }
        Some((path, methods))
    }

    fn responses(&self) -> Value {
        let mut given = json!({"description": "OK"});
        if !self.gives.is_empty() {
            given["content"] = contents(&self.gives);
        }
        let error = contents(&[(JSON, Some("Error"))]);
        json!({"200": given, "default": {"description": "An error", "content": error}})
    }
}

fn contents(contents: &[Content]) -> Value {
    contents.iter().map(|content| (content.0.to_owned(), body(content))).collect()
}

fn body((media, schema): &Content) -> Value {
    match schema {
        Some(name) => json!({"schema": {"$ref": format!("#/components/schemas/{name}")}}),
        None if media.ends_with("json") => json!({"schema": {"type": "object"}}),
        None => json!({"schema": {"type": "string"}}),
    }
}

/// The OpenAPI paths of routes, in their order.
pub fn described<'a>(routes: impl IntoIterator<Item = &'a Route>) -> Value {
    routes.into_iter().filter_map(Route::described).collect::<Map<String, Value>>().into()
}

/// The router adds the header `allow`, which names the methods of the path.
async fn wrong_method(request: Request) -> Response {
    let path = quoted(request.uri().path());
    let message =
        format!("{path} does not take {}; the header `allow` says what it takes", request.method());
    ApiError::new(Code::MethodNotAllowed, message).into_response()
}
