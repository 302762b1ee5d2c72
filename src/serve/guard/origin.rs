//! Where a request comes from: the host name that it asks, and the web page that sent it.

use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::peer;
use crate::serve::app::App;
use crate::serve::error::{ApiError, Code};
use crate::serve::request::fields::quoted;

/// What browsers say of the page that a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses unknown host names, against DNS rebinding, and web pages of other origins.
pub(super) async fn check_origin(
    State(app): State<Arc<App>>,
    request: Request,
    next: Next,
) -> Response {
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().count() > 1 {
        let message = "the request has more than one Host header";
        return ApiError::invalid("host", message).into_response();
    }
    // A header that is not text is an unknown name.
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Browsers cannot connect to Unix sockets.
    let is_tcp = peer(&request).is_some();
    if let Some(host) =
        host.filter(|host| is_tcp && !is_allowed_host(host, &app.options.listen.allow_host))
    {
        let host = quoted(host);
        let message = format!("the server is not asked as {host}; --allow-host adds a name");
        return ApiError::new(Code::HostNotAllowed, message).into_response();
    }
    let is_allowed = |origin: &HeaderValue| {
        app.options.listen.cors_origin.iter().any(|allowed| allowed.as_bytes() == origin.as_bytes())
    };
    let may_post = headers.get(header::ORIGIN).is_some_and(is_allowed);
    if request.method() == Method::POST && !may_post && is_of_another_site(headers) {
        let message = "a page of another site sent this; only the server's own, and those of --cors-origin, may";
        return ApiError::new(Code::OriginNotAllowed, message).into_response();
    }
    let Some(origin) = headers.get(header::ORIGIN).cloned() else {
        return next.run(request).await;
    };
    let own = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    let has_tls = app.options.listen.has_tls();
    let is_own = own.is_some_and(|(scheme, authority)| {
        Some(authority) == host && (scheme == "https" || !has_tls)
    });
    if is_own {
        return next.run(request).await;
    }
    if !is_allowed(&origin) {
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
        HeaderValue::from_static("retry-after, x-request-id, x-wardround-ignored"),
    );
    headers.append(header::VARY, HeaderValue::from_static("Origin"));
    response
}

/// Whether a browser says that a request comes from a page of another site.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(FETCH_SITE).into_iter();
    sites.any(|site| site != "same-origin" && site != "none")
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

/// IP addresses, `localhost` and the names in `allowed`, with or without a port: DNS rebinding needs another name.
fn is_allowed_host(host: &str, allowed: &[String]) -> bool {
    // A name or address, and its port.
    let (name, port) = match host.strip_prefix('[') {
        Some(rest) => match rest.split_once(']') {
            Some((address, port)) if address.parse::<Ipv6Addr>().is_ok() => (address, port),
            _ => return false,
        },
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_port = port.is_empty()
        || port.strip_prefix(':').is_some_and(|port| port.bytes().all(|c| c.is_ascii_digit()));
    let is_address = name.parse::<IpAddr>().is_ok();
    is_port
        && (is_address
            || name == "localhost"
            || allowed.iter().any(|other| other.eq_ignore_ascii_case(name)))
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
