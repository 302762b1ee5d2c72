//! Middleware of all requests: checks host names, origins and keys, and adds headers to responses. Callers are made here alone.

use std::collections::BTreeSet;
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
use super::response::held::hold;
use super::route::Access;
use super::{page, session};

mod identity;
mod origin;

pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const MOST_ID_BYTES: usize = 64;
const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The client's address; `None` for a Unix socket.
#[derive(Clone, Copy, Debug)]
pub struct Peer(pub Option<IpAddr>);

/// Routes of one access behind its checks. The layer that is added last runs first.
pub fn at(router: Router<Arc<App>>, app: &Arc<App>, access: Access) -> Router<Arc<App>> {
    router
        .layer(from_fn_with_state(app.clone(), hold))
        .layer(from_fn_with_state((app.clone(), access), check_key))
        .layer(from_fn_with_state((app.clone(), access), check_origin))
}

/// All routes behind what every response gets.
pub fn around(router: Router, app: &Arc<App>) -> Router {
    router
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
async fn check_key(
    State((app, access)): State<(Arc<App>, Access)>,
    mut request: Request,
    next: Next,
) -> Response {
    // Owned, since a request is not `Sync`.
    let headers = request.headers().clone();
    let trusted = app.options.listen.trust_user_header.as_ref();
    let names = [header::AUTHORIZATION, API_KEY].into_iter().chain(trusted.cloned());
    if let Some(name) = names.into_iter().find(|name| headers.get_all(name).iter().count() > 1) {
        let message = format!("the request has more than one header {name}: who asks is not clear");
        return ApiError::invalid(name.as_str(), message).into_response();
    }
    let user = proxied(&app, &request);
    let keys: BTreeSet<&str> = given_keys(&headers).into_iter().flatten().collect();
    if keys.len() > 1 || user.is_some() && !keys.is_empty() {
        let message = "the request has two keys, or a key and a user: who asks is not clear";
        return ApiError::new(Code::InvalidValue, message).into_response();
    }
    if let Some(caller) = &user
        && may(caller.role(), access)
    {
        request.extensions_mut().insert(caller.clone());
        return next.run(request).await;
    }
    if access == Access::PublicPage
        && let Some(caller) = of_session(&app, &headers, is_secure(request.extensions())).await
    {
        request.extensions_mut().insert(caller);
    }
    let is_nobodys = trusted.is_some() && user.is_none() && app.keys.borrow().is_none();
    if access.is_public() && !(is_nobodys && access == Access::PublicPage) {
        return next.run(request).await;
    }
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
        None if matches!(access, Access::Cases | Access::Page) => {
            of_session(&app, &headers, is_secure(request.extensions())).await
        }
        given => given.and_then(|key| keys.find(key)).map(Caller::of_key),
    };
    let Some(caller) = caller else {
        if given.is_none() && access == Access::Page {
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
    if !may(caller.role(), access) {
        return ApiError::new(Code::Forbidden, "this key has another role").into_response();
    }
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// The user whom a trusted reverse proxy on this machine names, in whatever bytes it does: names that differ are two callers.
fn proxied(app: &App, request: &Request) -> Option<Caller> {
    let name = app.options.listen.trust_user_header.as_ref()?;
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
    Some(caller).filter(|caller| may(caller.role(), Access::Page))
}

pub fn may(role: Role, access: Access) -> bool {
    let is_of_cases = matches!(access, Access::Cases | Access::Page);
    access.is_public()
        || match role {
            Role::Admin => true,
            Role::Api => access != Access::Metrics,
            Role::Clinician => is_of_cases,
            Role::Metrics => access == Access::Metrics,
        }
}

/// The key of `Authorization: Bearer`, else of `x-api-key`.
fn given_key(headers: &HeaderMap) -> Option<&str> {
    given_keys(headers).into_iter().flatten().next()
}

fn given_keys(headers: &HeaderMap) -> [Option<&str>; 2] {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = text(header::AUTHORIZATION).and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    [bearer, text(API_KEY)].map(|key| key.filter(|key| !key.is_empty()))
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
    fn a_role_may_do_what_is_its_own() {
        let allowed = |role| {
            let all = [Access::Public, Access::Metrics, Access::Cases, Access::Page, Access::Api];
            all.map(|access| may(role, access))
        };
        assert_eq!(allowed(Role::Admin), [true; 5]);
        assert_eq!(allowed(Role::Api), [true, false, true, true, true]);
        assert_eq!(allowed(Role::Clinician), [true, false, true, true, false]);
        assert_eq!(allowed(Role::Metrics), [true, true, false, false, false]);
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
