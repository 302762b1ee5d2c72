//! Requests for a file's header, its bytes from an offset on, or a repository's listing.

use std::time::Duration;

use serde::Deserialize;
use ureq::http::{Response, StatusCode, Uri};
use ureq::typestate::WithoutBody;
use ureq::{Agent, Body, RequestBuilder};

use super::super::cache::is_commit;
use super::super::proxy::Proxies;
use super::super::{HubError, HubOptions, Repository, Token};
use crate::outside;

const MOST_REDIRECTS: usize = 5;
const LONGEST_LISTING_BYTES: u64 = 64 << 20;

/// A client of one host.
pub struct Client {
    agent: Agent,
    proxies: Proxies,
    /// The header that says to this host who asks.
    authorization: Option<Token>,
    timeout: Duration,
    /// The pause after the first attempt that brings nothing.
    pub pause: Duration,
    /// The model whose files are asked for; of a dataset none.
    model: Option<Repository>,
}

/// A repository at one revision.
#[derive(Deserialize)]
pub struct Listing {
    #[serde(rename = "sha")]
    pub commit: String,
    siblings: Vec<Sibling>,
}

#[derive(Deserialize)]
struct Sibling {
    rfilename: String,
}

/// A file of the hub, before its download.
pub struct RemoteFile {
    pub url: String,
    /// A sha256 for a large file, git's sha1 for a small one.
    pub etag: String,
    pub size_bytes: u64,
}

impl Listing {
    pub fn has(&self, file: &str) -> bool {
        self.siblings.iter().any(|sibling| sibling.rfilename == file)
    }
}

impl Client {
    /// A client that waits as long as the options say, and says by the token who asks.
    #[expect(clippy::disallowed_methods, reason = "the one place where a connection may be opened")]
    pub fn new(options: &HubOptions, token: Option<Token>, model: Option<Repository>) -> Self {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // Each request says which way it goes, and follows its redirects itself: another host may be asked another way.
            .proxy(None)
            .max_redirects(0)
            .user_agent(concat!("wardround/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(options.timeout))
            .timeout_connect(Some(options.timeout))
            .timeout_recv_response(Some(options.timeout))
            .timeout_per_read(Some(options.timeout))
            .build()
            .new_agent();
        let bearer = token.map(|token| Token(format!("Bearer {}", token.secret())));
        Self {
            agent,
            proxies: options.proxies.clone(),
            authorization: bearer,
            timeout: options.timeout,
            pause: options.timeout / 30,
            model,
        }
    }

    /// Resolves the revision of `what` and lists its files.
    pub fn list(&self, url: &str, what: &str) -> Result<Listing, HubError> {
        let mut response = self.ask(url, Some(0), Some(self.timeout))?;
        self.accept(url, what, &response)?;
        // Unpacked, which ureq's own limit does not see.
        let text = outside::within(response.body_mut().as_reader(), LONGEST_LISTING_BYTES)
            .map_err(|error| unreachable(url, error))?
            .ok_or_else(|| bad(url, format!("it is longer than {LONGEST_LISTING_BYTES} bytes")))?;
        let listing: Listing =
            serde_json::from_slice(&text).map_err(|error| bad(url, error.to_string()))?;
        match is_commit(&listing.commit) {
            true => Ok(listing),
            false => Err(bad(url, format!("`{}` is not a commit", listing.commit))),
        }
    }

    /// Asks for the etag and size of `what`.
    pub fn inspect(&self, url: String, what: &str) -> Result<RemoteFile, HubError> {
        let response = self.ask(&url, None, Some(self.timeout))?;
        if !response.status().is_redirection() {
            self.accept(&url, what, &response)?;
        }
        let header = |linked, own| text(&response, linked).or_else(|| text(&response, own));
        let etag = header("x-linked-etag", "etag").unwrap_or_default();
        let etag = etag.trim_start_matches("W/").trim_matches('"').to_owned();
        // It names a file of the cache.
        let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"-_".contains(&byte);
        if !(1..=128).contains(&etag.len()) || !etag.bytes().all(is_part) {
            return Err(bad(&url, format!("`{etag}` is not an etag")));
        }
        let size = header("x-linked-size", "content-length").and_then(|size| size.parse().ok());
        let size_bytes = size.ok_or_else(|| bad(&url, "it does not give the file's size"))?;
        Ok(RemoteFile { url, etag, size_bytes })
    }

    /// Asks for a file's bytes from `offset` on, and says where they begin: a server that cannot give a part gives the whole.
    pub fn bytes(&self, url: &str, offset: u64) -> Result<(u64, Body), HubError> {
        let response = self.ask(url, Some(offset), None)?;
        self.accept(url, url, &response)?;
        if response.status() != StatusCode::PARTIAL_CONTENT {
            return Ok((0, response.into_body()));
        }
        let range = text(&response, "content-range").unwrap_or_default();
        if !range.starts_with(&format!("bytes {offset}-")) {
            return Err(bad(url, format!("asked for bytes from {offset} on, got `{range}`")));
        }
        Ok((offset, response.into_body()))
    }

    /// Asks for the bytes at `url` as they are, from an offset on, wherever it is redirected to; without an offset for the header, and then only
    /// redirects within the host (a renamed repository) are followed: the store that the last one leads to knows neither etag nor size. Who
    /// asks is said to the host of `url` alone.
    fn ask(
        &self,
        url: &str,
        offset: Option<u64>,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, HubError> {
        let mut place = url.to_owned();
        for _ in 0..MOST_REDIRECTS {
            let mut request = match offset {
                Some(_) => self.agent.get(&place),
                None => self.agent.head(&place),
            };
            request = request.header("accept-encoding", "identity");
            if let Some(offset) = offset.filter(|offset| *offset > 0) {
                request = request.header("range", format!("bytes={offset}-"));
            }
            if let Some(who) = self.authorization.as_ref().filter(|_| is_same_host(url, &place)) {
                request = request.header("authorization", who.secret());
            }
            let response = self.call(&place, request.config().timeout_global(timeout).build())?;
            let next = redirect(&place, &response);
            match next.filter(|next| offset.is_some() || is_same_host(&place, next)) {
                Some(next) => place = next,
                None => return Ok(response),
            }
        }
        Err(bad(url, format!("more than {MOST_REDIRECTS} redirects")))
    }

    /// Sends a request the way that the environment says; errors name the proxy.
    fn call(
        &self,
        url: &str,
        request: RequestBuilder<WithoutBody>,
    ) -> Result<Response<Body>, HubError> {
        let way = self.proxies.of(url)?;
        let failed = |error: ureq::Error| match way {
            Some(proxy) => {
                unreachable(url, format!("{error} through the proxy of {}", proxy.variable))
            }
            None => unreachable(url, error),
        };
        let proxy = way.map(|proxy| ureq::Proxy::new(proxy.url.secret())).transpose();
        let request = request.config().proxy(proxy.map_err(failed)?).build();
        request.call().map_err(failed)
    }

    /// An error, in the user's terms, for a status that is not success.
    fn accept(&self, url: &str, what: &str, response: &Response<Body>) -> Result<(), HubError> {
        let status = response.status().as_u16();
        if response.status().is_success() {
            return Ok(());
        }
        let message = text(response, "x-error-message").map(str::to_owned);
        // The hub hides what a caller may not see behind 401, whether it exists or not; a card's repository does.
        let is_hidden = text(response, "x-error-code") == Some("RepoNotFound");
        let is_there = |model: &Repository| !is_hidden || model.card.is_some();
        Err(match (&self.model, status) {
            (Some(model), 401 | 403) if is_there(model) => HubError::Refused {
                repository: model.id.clone(),
                status,
                message,
                page: model.access_page(),
            },
            (Some(_), 401 | 403 | 404) => HubError::NotFound { what: what.to_owned(), message },
            _ => HubError::Status { url: url.to_owned(), status },
        })
    }
}

pub fn bad(url: &str, reason: impl Into<String>) -> HubError {
    HubError::BadAnswer { url: url.to_owned(), reason: reason.into() }
}

pub fn unreachable(url: &str, reason: impl ToString) -> HubError {
    HubError::Unreachable { url: url.to_owned(), reason: reason.to_string() }
}

fn text<'a>(response: &'a Response<Body>, name: &str) -> Option<&'a str> {
    response.headers().get(name)?.to_str().ok()
}

/// Where a response redirects to.
fn redirect(url: &str, response: &Response<Body>) -> Option<String> {
    let location = text(response, "location")?;
    let uri: Uri = url.parse().ok().filter(|_| response.status().is_redirection())?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    Some(match location.starts_with('/') {
        true => format!("{scheme}://{authority}{location}"),
        false => location.to_owned(),
    })
}

fn is_same_host(url: &str, other: &str) -> bool {
    let place = |url: &str| {
        let uri: Uri = url.parse().ok()?;
        Some((uri.scheme_str()?.to_owned(), uri.authority()?.clone()))
    };
    place(url).is_some_and(|own| place(other) == Some(own))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_goes_to_no_other_port_scheme_or_name() {
        let own = "https://hub.example/a/b";
        assert!(is_same_host(own, "https://HUB.example/c"));
        for other in [
            "https://hub.example:8443/a",
            "http://hub.example/a",
            "https://hub.example.evil/a",
            "https://user@hub.example/a",
            "https://evil.example/hub.example",
        ] {
            assert!(!is_same_host(own, other), "{other}");
        }
    }
}
