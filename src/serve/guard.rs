//! Middleware of all requests: checks host names, origins and keys, and adds headers to responses. Callers are made here alone.

use std::convert::Infallible;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use axum::Router;
use axum::extract::{FromRequestParts, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use tower_http::catch_panic::CatchPanicLayer;

use self::identity::identity_of_key;
pub use self::identity::{Caller, Identity, visitors_token};
pub use self::origin::is_secure;
use self::origin::{Secure, check_origin, comes_encrypted, is_near};
use super::app::App;
use super::audit::Who;
use super::error::{ApiError, Code, Rejected};
use super::keys::Role;
use super::{page, session};

mod identity;
mod origin;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MOST_ID_BYTES: usize = 64;
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

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
async fn finish(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    let is_head = request.method() == Method::HEAD;
    let is_secure = comes_encrypted(&app, &request);
    request.extensions_mut().insert(Secure(is_secure));
    let mut response = next.run(request).await;
    if let Some(Rejected(code)) = response.extensions().get() {
        app.metrics.rejected(*code);
    }
    let headers = response.headers_mut();
    // An id from the request's body is set already.
    headers.entry(REQUEST_ID).or_insert(id);
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if is_secure {
        let year = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, year);
    }
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

/// Refuses requests without a key whose role allows them.
async fn check_key(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    // Owned, since a request is not `Sync`.
    let (path, headers) = (request.uri().path().to_owned(), request.headers().clone());
    let trusted = app.options.trusted_user_header.as_ref();
    let names = [header::AUTHORIZATION, API_KEY].into_iter().chain(trusted.cloned());
    if let Some(name) = names.into_iter().find(|name| headers.get_all(name).iter().count() > 1) {
        let message = format!("the request has more than one header {name}: who asks is not clear");
        return ApiError::of(Code::InvalidValue, name.as_str(), message).into_response();
    }
    let needed = needed(&path);
    let user = proxied(&app, &request);
    if let Some(caller) = &user
        && needed.is_none_or(|needed| may(caller.role(), needed))
    {
        request.extensions_mut().insert(caller.clone());
        return next.run(request).await;
    }
    let is_public_page = matches!(path.trim_end_matches('/'), "" | "/logout");
    if is_public_page
        && let Some(caller) = of_session(&app, &headers, is_secure(request.extensions())).await
    {
        request.extensions_mut().insert(caller);
    }
    let Some(needed) = needed else {
        return next.run(request).await;
    };
    let Some(keys) = app.keys.borrow().clone() else {
        // Where a proxy says who asks, nobody asks without a name, and users have their role and no other.
        return match (trusted, user) {
            (None, _) => next.run(request).await,
            (Some(name), None) => {
                let message = format!("the proxy names no user in {name}");
                ApiError::new(Code::InvalidApiKey, message).into_response()
            }
            (Some(_), Some(_)) => {
                let message = "users check cases; what else there is needs a key, and the server has no --keys";
                ApiError::new(Code::Forbidden, message).into_response()
            }
        };
    };
    let given = given_key(&headers);
    let caller = match given {
        // A session of the page gives access to cases only.
        None if needed == Needed::Cases => {
            of_session(&app, &headers, is_secure(request.extensions())).await
        }
        given => given.and_then(|key| keys.find(key)).map(Caller::of_key),
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
                app.audit.note(Who::of(request.extensions()).event("login_failed"));
                let message = match given {
                    Some(_) => "the API key is unknown, or was revoked",
                    None => "this needs an API key: send it as `Authorization: Bearer KEY`",
                };
                ApiError::new(Code::InvalidApiKey, message)
            }
        };
        return error.into_response();
    };
    if !may(caller.role(), needed) {
        return ApiError::new(Code::Forbidden, "this key has another role").into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The user whom a trusted reverse proxy on this machine names, in whatever bytes it does: names that differ are two callers.
fn proxied(app: &App, request: &Request) -> Option<Caller> {
    let name = app.options.trusted_user_header.as_ref()?;
    let user = request.headers().get(name).filter(|_| is_near(request))?;
    let user = user.as_bytes().trim_ascii();
    (!user.is_empty()).then(|| Caller::of_user(user, |user| app.user_load(user)))
}

/// The caller of the page's session that a request has a cookie of. Its key must still be there: one of the same name is another.
async fn of_session(app: &App, headers: &HeaderMap, is_secure: bool) -> Option<Caller> {
    let keys = app.keys.borrow().clone()?;
    let id = session::SESSION.of(headers, is_secure)?;
    let wanted = id.clone();
    let find = move |sessions: &mut session::Sessions| sessions.find(&wanted, Instant::now());
    let identity = app.cases.store.sessions(find).await.flatten()?;
    let holder = keys.holders().iter().find(|holder| identity_of_key(holder) == identity)?;
    Some(Caller::of_session(holder, id))
}

/// The caller who logs in to the page with this key.
pub fn log_in(app: &App, key: &str) -> Option<Caller> {
    let keys = app.keys.borrow().clone()?;
    let caller = keys.find(key).map(Caller::of_key)?;
    Some(caller).filter(|caller| may(caller.role(), Needed::Cases))
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
    bearer.filter(|key| !key.is_empty()).or_else(|| text(API_KEY))
}

/// The client's address; `None` for a Unix socket.
pub fn peer(request: &Request) -> Option<IpAddr> {
    request.extensions().get::<Peer>().and_then(|peer| peer.0)
}

/// The caller of a request, for handlers; and how the audit trail names it.
pub struct Asking {
    pub caller: Option<Caller>,
    pub who: Who,
}

impl<S: Sync> FromRequestParts<S> for Asking {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Asking, Infallible> {
        let caller = parts.extensions.get::<Caller>().cloned();
        Ok(Asking { who: Who::of(&parts.extensions), caller })
    }
}

/// The key of a request, if there are keys.
pub fn caller(request: &Request) -> Option<Caller> {
    request.extensions().get::<Caller>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

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
