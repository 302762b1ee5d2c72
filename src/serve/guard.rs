//! Middleware of all requests: checks host names and keys, and adds headers to responses. Who asks is decided here alone.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::error::{ApiError, Code};
use super::keys::Key;
use super::request::fields::quoted;

/// Adds headers to every response.
pub async fn finish(request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}

/// Refuses requests for other hosts, and those without a key. What a page of another site may send without asking first, which nobody here
/// answers, is no JSON, and is refused with its body.
pub async fn check(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    match refuse_other_hosts(&app, &request).and_then(|()| admitted(&app, &request)) {
        Ok(caller) => {
            if let Some(caller) = caller {
                request.extensions_mut().insert(caller);
            }
            next.run(request).await
        }
        Err(error) => error.into_response(),
    }
}

/// Refuses unknown host names, against DNS rebinding.
fn refuse_other_hosts(app: &App, request: &Request) -> Result<(), ApiError> {
    let mut hosts = request.headers().get_all(header::HOST).into_iter();
    // A header that is not text is an unknown name.
    let host = hosts.next().map(|host| host.to_str().unwrap_or_default());
    if hosts.next().is_some() {
        return Err(ApiError::invalid("host", "the request has more than one Host header"));
    }
    let allowed = &app.options.listen.allow_host;
    match host.filter(|host| !is_allowed_host(host, allowed)) {
        None => Ok(()),
        Some(host) => {
            let host = quoted(host);
            let message = format!("the server is not asked as {host}; --allow-host adds a name");
            Err(ApiError::new(Code::HOST_NOT_ALLOWED, message))
        }
    }
}

/// IP addresses, `localhost` and the names in `allowed`, with or without a port: DNS rebinding needs another name.
fn is_allowed_host(host: &str, allowed: &[String]) -> bool {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|c| c.is_ascii_digit());
    let split = host.rsplit_once(':').filter(|(_, port)| is_port(port));
    let name = split.map_or(host, |(name, _)| name);
    match name.strip_prefix('[').and_then(|name| name.strip_suffix(']')) {
        Some(address) => address.parse::<Ipv6Addr>().is_ok(),
        None => {
            name.parse::<Ipv4Addr>().is_ok()
                || name == "localhost"
                || allowed.iter().any(|other| other.eq_ignore_ascii_case(name))
        }
    }
}

/// Who asks; `None` where nobody needs a key.
fn admitted(app: &App, request: &Request) -> Result<Option<Caller>, ApiError> {
    let given = given_key(request.headers())?;
    if request.uri().path() == "/health" {
        return Ok(None);
    }
    let Some(keys) = app.keys.borrow().clone() else { return Ok(None) };
    let refuse = |message| Err(ApiError::new(Code::INVALID_API_KEY, message));
    let Some(given) = given else {
        return refuse("this needs an API key: send it as `Authorization: Bearer KEY`");
    };
    // All keys are compared, so that the time tells nothing.
    let found = keys.iter().fold(None, |found, key| if key.is(given) { Some(key) } else { found });
    match found {
        None => refuse("the API key is unknown, or was revoked"),
        Some(key) => Ok(Some(key.clone())),
    }
}

/// Who asks: the holder of a key. One that was made anew under an old name is another caller.
pub type Caller = Key;

/// Whose turn a request takes. Without keys each request is a caller of its own.
pub fn turn(caller: Option<&Caller>) -> u64 {
    static COUNTER: AtomicU64 = AtomicU64::new(0);
    caller.map_or_else(|| COUNTER.fetch_add(1, Relaxed), Caller::number)
}

/// The key of `Authorization: Bearer`.
fn given_key(headers: &HeaderMap) -> Result<Option<&str>, ApiError> {
    let mut given = headers.get_all(header::AUTHORIZATION).into_iter();
    let first = given.next().and_then(|value| value.to_str().ok());
    if given.next().is_some() {
        let message = "the request has more than one key: who asks is not clear";
        return Err(ApiError::invalid("authorization", message));
    }
    let key = first.and_then(|value| {
        let (scheme, key) = value.split_once(' ')?;
        scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
    });
    Ok(key.filter(|key| !key.is_empty()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_names_are_not_one_caller() {
        let caller = |secret| Key::new("ward", secret);
        let (old, new) = (caller("wr_a"), caller("wr_b"));
        assert_ne!(old.identity(), new.identity());
        assert_ne!(old.number(), new.number());
        assert_ne!(turn(None), turn(None));
        assert_ne!(old.salt(), new.salt());
        assert_eq!(old.salt(), caller("wr_a").salt());
    }

    #[test]
    fn a_key_is_what_follows_bearer_and_an_empty_one_is_none() {
        let key = |value: &'static str| {
            let value = HeaderValue::from_static(value);
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, value)]);
            given_key(&headers).unwrap().map(str::to_owned)
        };
        assert_eq!(key("bearer wr_a").as_deref(), Some("wr_a"));
        assert_eq!(key("Bearer "), None);
        assert_eq!(key("Basic wr_a"), None);
    }

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
            "[::1]",
        ] {
            assert!(is_allowed_host(host, &allowed), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example:8000",
            "",
            "[evil]",
            "[::1].evil.example",
            "[::1]evil.example:80",
            "[127.0.0.1]",
            "127.0.0.1:80.evil.example",
            "localhost:evil.example",
        ] {
            assert!(!is_allowed_host(host, &allowed), "{host}");
        }
    }
}
