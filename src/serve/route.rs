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

/// Who may ask a route, and how it answers those who may not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone.
    Public,
    /// Everyone, by a page whose forms carry a token.
    PublicPage,
    /// Whoever reads metrics.
    Metrics,
    /// Whoever asks about cases, by a key or by the page's session.
    Cases,
    /// The same, by a page whose forms carry a token: without a session it redirects to the login.
    Page,
    /// Whoever uses models; also what there is not.
    Api,
}

impl Access {
    pub fn is_public(self) -> bool {
        matches!(self, Access::Public | Access::PublicPage)
    }

    /// Whether forms are sent here, which no other site may.
    pub fn takes_forms(self) -> bool {
        matches!(self, Access::PublicPage | Access::Page)
    }
}

pub const JSON: &str = "application/json";
pub const EVENTS: &str = "text/event-stream";

/// A body by its media type, and the name of its schema; `None` where it has none.
type Content = (&'static str, Option<&'static str>);

/// What the description says of a route.
#[derive(Clone, Debug, Default)]
struct Operation {
    summary: &'static str,
    takes: Vec<Content>,
    /// With its status and a word on it; none where it answers without a body.
    gives: Vec<(&'static str, &'static str, Content)>,
}

/// A path with its handlers, for those who may ask it.
#[derive(Clone)]
pub struct Route {
    /// What follows the first is the same, and described there.
    paths: Vec<&'static str>,
    pub access: Access,
    method: &'static str,
    handlers: MethodRouter<Arc<App>>,
    /// `None`: a page, which is for people.
    operation: Option<Operation>,
}

impl Route {
    /// A route of the API that is read from.
    pub fn get<T: 'static>(
        path: &'static str,
        access: Access,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        let route = Route::page(path, access, get(handler));
        Route { operation: Some(Operation::default()), ..route }
    }

    /// A route of the API that something is sent to.
    pub fn post<T: 'static>(
        path: &'static str,
        access: Access,
        handler: impl Handler<T, Arc<App>>,
    ) -> Route {
        let route = Route::page(path, access, post(handler));
        Route { method: "post", operation: Some(Operation::default()), ..route }
    }

    /// A page, a form of one, or what it loads.
    pub fn page(path: &'static str, access: Access, handlers: MethodRouter<Arc<App>>) -> Route {
        Route { paths: vec![path], access, method: "get", handlers, operation: None }
    }

    /// The same under another path.
    pub fn also(mut self, path: &'static str) -> Route {
        self.paths.push(path);
        self
    }

    pub fn says(self, summary: &'static str) -> Route {
        self.with(|operation| operation.summary = summary)
    }

    pub fn takes(self, media: &'static str, schema: Option<&'static str>) -> Route {
        self.with(|operation| operation.takes.push((media, schema)))
    }

    pub fn gives(self, media: &'static str, schema: Option<&'static str>) -> Route {
        self.with(|operation| operation.gives.push(("200", "OK", (media, schema))))
    }

    /// What a client gets that does not wait.
    pub fn gives_later(self, schema: &'static str) -> Route {
        let answer = ("202", "Taken, where respond-async was preferred", (JSON, Some(schema)));
        self.with(|operation| operation.gives.push(answer))
    }

    fn with(mut self, change: impl FnOnce(&mut Operation)) -> Route {
        self.operation.as_mut().map(change);
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

    /// Its path and what the description says of it; `None` for a page.
    fn described(&self) -> Option<(String, Value)> {
        let operation = self.operation.as_ref()?;
        let mut described =
            json!({"summary": operation.summary, "responses": operation.responses()});
        if self.access.is_public() {
            described["security"] = json!([]);
        }
        if !operation.takes.is_empty() {
            described["requestBody"] =
                json!({"required": true, "content": contents(operation.takes.iter())});
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
}

impl Operation {
    fn responses(&self) -> Value {
        let mut responses = Map::new();
        for (status, description, content) in &self.gives {
            let entry = responses
                .entry(*status)
                .or_insert_with(|| json!({"description": description, "content": {}}));
            entry["content"][content.0] = body(content);
        }
        if self.gives.is_empty() {
            responses.insert("200".to_owned(), json!({"description": "OK"}));
        }
        let error = contents([(JSON, Some("Error"))].iter());
        responses
            .insert("default".to_owned(), json!({"description": "An error", "content": error}));
        responses.into()
    }
}

fn contents<'a>(contents: impl Iterator<Item = &'a Content>) -> Value {
    contents.map(|content| (content.0.to_owned(), body(content))).collect()
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
