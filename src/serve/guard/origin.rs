//! Where a request comes from: the host name that it asks, and the web page that sent it. A page of another site can reach a server on
//! this machine, which no proxy stands before.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, header};

use super::Peer;
use crate::serve::app::App;
use crate::serve::error::{ApiError, Code};
use crate::serve::request::fields::quoted;

/// What browsers say of the page that a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Refuses unknown host names, against DNS rebinding, and web pages of other origins.
pub(super) fn refuse_other_sites(app: &App, request: &Request) -> Result<(), ApiError> {
    let headers = request.headers();
    if headers.get_all(header::HOST).iter().count() > 1 {
        return Err(ApiError::invalid("host", "the request has more than one Host header"));
    }
    // A header that is not text is an unknown name.
    let host = headers.get(header::HOST).map(|host| host.to_str().unwrap_or_default());
    // Browsers cannot connect to Unix sockets.
    let peer = request.extensions().get::<Peer>();
    let is_tcp = peer.is_some_and(|peer| peer.0.is_some());
    let listen = &app.options.listen;
    if let Some(host) = host.filter(|host| is_tcp && !is_allowed_host(host, &listen.allow_host)) {
        let host = quoted(host);
        let message = format!("the server is not asked as {host}; --allow-host adds a name");
        return Err(ApiError::new(Code::HostNotAllowed, message));
    }
    let is_own = |origin: &str| {
        origin.split_once("://").is_some_and(|(scheme, authority)| {
            Some(authority) == host && (scheme == "https" || !listen.has_tls())
        })
    };
    let origin = headers.get(header::ORIGIN);
    let is_foreign = origin.is_some_and(|origin| !origin.to_str().is_ok_and(is_own));
    if is_foreign || (request.method() == Method::POST && is_of_another_site(headers)) {
        let message = "a page of another site sent this; a proxy may let it, and take off Origin and Sec-Fetch-Site";
        return Err(ApiError::new(Code::OriginNotAllowed, message));
    }
    Ok(())
}

/// Whether a browser says that a request comes from a page of another site.
fn is_of_another_site(headers: &HeaderMap) -> bool {
    let mut sites = headers.get_all(FETCH_SITE).into_iter();
    sites.any(|site| site != "same-origin" && site != "none")
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
