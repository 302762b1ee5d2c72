//! Middleware of all requests: checks host names, origins and keys, and adds headers to responses.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;

use super::app::{App, Caller};
use super::audit::Who;
use super::error::{ApiError, Code, Rejected};
use super::keys::Role;
use super::page;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MOST_ID_BYTES: usize = 64;

/// The client's address; `None` for a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub Option<IpAddr>);

/// `router` behind all checks. The layer that is added last runs first.
pub fn around(router: Router, app: &Arc<App>) -> Router {
    router
        .layer(from_fn_with_state(app.clone(), check_key))
        .layer(from_fn_with_state(app.clone(), check_origin))
        .layer(CatchPanicLayer::custom(|_panic| {
            ApiError::new(Code::Internal, "the request failed; the server goes on").into_response()
        }))
        .layer(from_fn_with_state(app.clone(), finish))
}

/// Adds headers to every response, and counts errors.
async fn finish(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let is_head = request.method() == Method::HEAD;
    let mut response = next.run(request).await;
    if let Some(Rejected(code)) = response.extensions().get() {
        app.metrics.rejected(*code);
    }
    let headers = response.headers_mut();
    // An id from the request's body is set already.
    headers.entry(REQUEST_ID).or_insert(id);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let is_over = *app.phase.borrow() != super::app::Phase::Serving;
    if is_over && !is_head {
        headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// The client's own id if it is valid, else a number.
fn request_id(headers: &HeaderMap) -> HeaderValue {
    let given = headers.get(&REQUEST_ID).filter(|id| is_plain_id(id.as_bytes()));
    given.cloned().unwrap_or_else(|| HeaderValue::from(new_request_id()))
}

/// A number that no other request has.
pub fn new_request_id() -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    COUNTER.fetch_add(1, Relaxed)
}

/// Whether an id may be used in a header.
pub fn is_plain_id(bytes: &[u8]) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-".contains(byte);
    !bytes.is_empty() && bytes.len() <= MOST_ID_BYTES && bytes.iter().all(is_plain)
}

/// Refuses unknown host names, against DNS rebinding, and web pages of other origins.
async fn check_origin(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().count() > 1 {
        let message = "the request has more than one Host header";
        return ApiError::of(Code::InvalidValue, "host", message).into_response();
    }
    // A header that is not text is an unknown name.
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Browsers cannot connect to Unix sockets.
    let is_tcp = peer(&request).is_some();
    if let Some(host) =
        host.filter(|host| is_tcp && !is_allowed_host(host, &app.options.allowed_hosts))
    {
        let host = super::request::fields::quoted(host);
        let message = format!("the server is not asked as {host}; --allow-host adds a name");
        return ApiError::new(Code::HostNotAllowed, message).into_response();
    }
    let Some(origin) = headers.get(header::ORIGIN).cloned() else {
        return next.run(request).await;
    };
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    // With `no-referrer`, as on our page, browsers send the origin `null`; the page's forms carry a token.
    let is_form = origin == "null" && page::has_token(request.uri().path());
    if is_form || own.is_some_and(|(_, authority)| Some(authority) == host) {
        return next.run(request).await;
    }
    if !app.options.cors_origins.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes()) {
        let message = "web pages of this origin may not ask; --cors-origin allows one";
        return ApiError::new(Code::OriginNotAllowed, message).into_response();
    }
    let mut response = match is_preflight(&request) {
        true => preflight(request.headers()),
        false => next.run(request).await,
    };
    let headers = response.headers_mut();
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.insert(
        header::ACCESS_CONTROL_EXPOSE_HEADERS,
        HeaderValue::from_static("location, retry-after, x-request-id, x-wardround-ignored"),
    );
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    response
}

fn is_preflight(request: &Request) -> bool {
    let asks = request.headers().contains_key(header::ACCESS_CONTROL_REQUEST_METHOD);
    request.method() == Method::OPTIONS && asks
}

/// Allows whatever headers are asked for: the origin is trusted, and clients such as openai-node send a dozen of their own.
fn preflight(asked: &HeaderMap) -> Response {
    let mut headers = HeaderMap::new();
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("GET, POST"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
    if let Some(names) = asked.get(header::ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    (StatusCode::NO_CONTENT, headers).into_response()
}

/// IP addresses, `localhost` and the names in `allowed`: DNS rebinding needs another name.
fn is_allowed_host(host: &str, allowed: &[String]) -> bool {
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let is_address = name.parse::<IpAddr>().is_ok();
    is_address
        || name == "localhost"
        || allowed.iter().any(|other| other.eq_ignore_ascii_case(name))
}

/// Refuses requests without a key whose role allows them.
async fn check_key(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    // Owned, since a request is not `Sync`.
    let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
    let needed = needed(&path);
    if let Some(caller) = proxied(&app, &request)
        && needed.is_none_or(|needed| may(caller.key.role, needed))
    {
        request.extensions_mut().insert(caller);
        return next.run(request).await;
    }
    if path == "/"
        && let Some(caller) = page::caller(&app, &headers).await
    {
        request.extensions_mut().insert(caller);
    }
    let Some(needed) = needed else {
        return next.run(request).await;
    };
    let Some(keys) = app.keys.borrow().clone() else {
        return next.run(request).await;
    };
    let given = given_key(&headers);
    let caller = match given {
        // A session of the page gives access to cases only.
        None if needed == Needed::Cases => page::caller(&app, &headers).await,
        given => given.and_then(|key| keys.find(key)),
    };
    let Some(caller) = caller else {
        if given.is_none() && page::is_of(&path) {
            return page::to_login();
        }
        let error = match app.failures.count(peer(&request)) {
            true => ApiError::new(Code::TooManyFailures, "too many wrong keys from this address")
                .retry_after(60),
            false => {
                // Only failures within the limit are logged: whoever tries keys must not fill the disk.
                app.audit.note(Who::of(&request).event("login_failed"));
                let message = match given {
                    Some(_) => "the API key is unknown, or was revoked",
                    None => "this needs an API key: send it as `Authorization: Bearer KEY`",
                };
                ApiError::new(Code::InvalidApiKey, message)
            }
        };
        return error.into_response();
    };
    if !may(caller.key.role, needed) {
        return ApiError::new(Code::Forbidden, "this key has another role").into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The user whom a trusted reverse proxy on this machine names.
fn proxied(app: &App, request: &Request) -> Option<Caller> {
    let name = app.options.trusted_user_header.as_ref()?;
    let is_near = match request.extensions().get::<Peer>()?.0 {
        None => true,
        Some(address) => address.is_loopback(),
    };
    let user = request.headers().get(name).filter(|_| is_near)?.to_str().ok()?.trim();
    (!user.is_empty()).then(|| app.proxied_user(user))
}

/// The access that a path needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needed {
    Metrics,
    /// The page and the endpoints of cases.
    Cases,
    Api,
}

/// The access that a path needs; `None` if it is public.
fn needed(path: &str) -> Option<Needed> {
    match path.trim_end_matches('/') {
        "" | "/login" | "/logout" | "/health" | "/v1/health" | "/live" | "/version"
        | "/openapi.json" => None,
        "/page.css" | "/page.js" => None,
        "/metrics" => Some(Needed::Metrics),
        "/cases" | "/v1/check" | "/v1/ask" => Some(Needed::Cases),
        path if path.starts_with("/cases/") || path.starts_with("/v1/cases/") => {
            Some(Needed::Cases)
        }
        _ => Some(Needed::Api),
    }
}

pub fn may(role: Role, needed: Needed) -> bool {
    match (role, needed) {
        (Role::Admin, _) => true,
        (Role::Api, needed) => needed != Needed::Metrics,
        (Role::Clinician, needed) => needed == Needed::Cases,
        (Role::Metrics, needed) => needed == Needed::Metrics,
    }
}

/// The key of `Authorization: Bearer`, else of `x-api-key`.
fn given_key(headers: &HeaderMap) -> Option<&str> {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    bearer.filter(|key| !key.is_empty()).or_else(|| text(HeaderName::from_static("x-api-key")))
}

/// The client's address; `None` for a Unix socket.
pub fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().and_then(|peer| peer.0)
}

/// The key of a request, if there are keys.
pub fn caller(request: &Request) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_localhost_are_names_of_the_server_and_others_only_if_allowed() {
        let allowed = ["ward.example".to_owned()];
        for host in [
            "localhost",
            "localhost:8000",
            "127.0.0.1:80",
            "[::1]:8000",
            "10.0.0.7",
            "Ward.Example:1",
        ] {
            assert!(is_allowed_host(host, &allowed), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:8000", "", "[evil]"] {
            assert!(!is_allowed_host(host, &allowed), "{host}");
        }
    }

    #[test]
    fn every_path_but_a_few_needs_a_key_of_its_role() {
        assert_eq!(needed("/health/"), None);
        assert_eq!(needed("/v1/models"), Some(Needed::Api));
        assert_eq!(needed("/v1/cases/1/events"), Some(Needed::Cases));
        assert_eq!(needed("/healthy"), Some(Needed::Api));
        assert!(may(Role::Admin, Needed::Metrics) && !may(Role::Api, Needed::Metrics));
        assert!(may(Role::Clinician, Needed::Cases) && !may(Role::Clinician, Needed::Api));
        assert!(!may(Role::Metrics, Needed::Cases));
    }

    #[test]
    fn a_key_is_taken_from_either_header_and_an_empty_one_is_none() {
        let key = |name: &'static str, value: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(name, HeaderValue::from_static(value));
            given_key(&headers).map(str::to_owned)
        };
        assert_eq!(key("authorization", "bearer wr_a").as_deref(), Some("wr_a"));
        assert_eq!(key("authorization", "Bearer "), None);
        assert_eq!(key("authorization", "Basic wr_a"), None);
        assert_eq!(key("x-api-key", "wr_a").as_deref(), Some("wr_a"));
    }
}
