//! Requests for files: a file's header, its bytes from an offset on; of the hub also a repository's listing.

use std::time::Duration;

use hf_hub::api::RepoInfo;
use hf_hub::api::sync::Api;
use hf_hub::{Repo, RepoType};
use ureq::http::{HeaderMap, Response, StatusCode, Uri, header};
use ureq::typestate::WithoutBody;
use ureq::{Agent, Body, RequestBuilder};

use super::super::cache::{is_commit, is_hex};
use super::super::proxy::Proxies;
use super::super::{HubError, Repository, Token};
use crate::outside;

const MOST_REDIRECTS: usize = 5;
const LONGEST_LISTING_BYTES: u64 = 64 << 20;

/// A client of one host.
pub struct Client {
    pub agent: Agent,
    pub proxies: Proxies,
    pub token: Option<Token>,
    pub metadata_timeout: Duration,
    /// The pause after the first attempt that brings nothing.
    pub pause: Duration,
    /// Where the host is the hub: whose answers these are.
    pub gate: Option<Gate>,
}

/// What the hub's refusals are about.
pub struct Gate {
    pub repository: String,
    /// Where access is asked for.
    pub page: String,
    /// Whether the repository is known to exist: the hub hides what a caller may not see behind 401, whether it exists
    /// or not.
    pub is_known: bool,
}

/// The hub and one model's repository.
pub struct Hub<'a> {
    pub api: Api,
    pub client: Client,
    pub repository: &'a Repository,
}

/// A repository at one revision.
pub struct Listing {
    pub commit: String,
    files: Vec<String>,
}

/// A file of the hub, before its download.
pub struct RemoteFile {
    pub url: String,
    /// A sha256 for a large file, git's sha1 for a small one.
    pub etag: String,
    pub size_bytes: u64,
}

/// An answer whose body is a file's bytes.
pub struct Bytes {
    /// The offset that they begin at: the one asked for, or 0.
    pub offset: u64,
    pub body: Body,
}

impl Listing {
    pub fn has(&self, file: &str) -> bool {
        self.files.iter().any(|name| name == file)
    }
}

impl RemoteFile {
    /// The sum that the hub gives, where it gives one.
    pub fn sha256(&self) -> Option<&str> {
        Some(self.etag.as_str()).filter(|etag| is_hex(etag, 64))
    }

    /// The same of a small file: git's.
    pub fn git_sum(&self) -> Option<&str> {
        Some(self.etag.as_str()).filter(|etag| is_hex(etag, 40))
    }
}

impl Hub<'_> {
    /// Resolves the revision and lists its files.
    pub fn list(&self) -> Result<Listing, HubError> {
        let repo = self.api.repo(self.address(&self.repository.revision));
        let url = repo.info_request().uri_ref().map(Uri::to_string).unwrap_or_default();
        let what = format!("{} at revision {}", self.repository.id, self.repository.revision);

        let response = self.client.get(&url, 0, Some(self.client.metadata_timeout))?;
        let info = self.client.read_info(&url, &what, response)?;
        if !is_commit(&info.sha) {
            let reason = format!("`{}` is not a commit", info.sha);
            return Err(HubError::BadAnswer { url, reason });
        }
        Ok(Listing { commit: info.sha.clone(), files: names_in(info) })
    }

    /// A file's etag and size.
    pub fn inspect(&self, commit: &str, file: &str) -> Result<RemoteFile, HubError> {
        let url = self.api.repo(self.address(commit)).url(file);
        self.client.inspect(url, &format!("{file} in {} at {commit}", self.repository.id))
    }

    fn address(&self, revision: &str) -> Repo {
        Repo::with_revision(self.repository.id.clone(), RepoType::Model, revision.to_owned())
    }
}

impl Client {
    /// Asks for the etag and size of `what`. Only redirects within the host (a renamed repository) are followed: the store
    /// that the last one leads to knows neither.
    pub fn inspect(&self, url: String, what: &str) -> Result<RemoteFile, HubError> {
        let mut place = url.clone();
        for _ in 0..MOST_REDIRECTS {
            let request = self.plain(self.agent.head(&place));
            let response = self.call(&place, request, Some(self.metadata_timeout))?;
            match redirect(&place, &response).filter(|next| is_same_host(&place, next)) {
                Some(next) => place = next,
                None => {
                    if !response.status().is_redirection() {
                        self.accept(&place, what, &response)?;
                    }
                    return read_header(url, &response);
                }
            }
        }
        Err(HubError::BadAnswer { url, reason: format!("more than {MOST_REDIRECTS} redirects") })
    }

    /// Asks for a file's bytes from `offset` on; a server that cannot give a part gives the whole.
    pub fn bytes(&self, remote: &RemoteFile, offset: u64) -> Result<Bytes, HubError> {
        let url = &remote.url;
        let response = self.get(url, offset, None)?;
        self.accept(url, url, &response)?;
        let offset = match response.status() {
            StatusCode::PARTIAL_CONTENT => {
                let range =
                    text(response.headers(), header::CONTENT_RANGE.as_str()).unwrap_or_default();
                if !range.starts_with(&format!("bytes {offset}-")) {
                    let reason = format!("asked for bytes from {offset} on, got `{range}`");
                    return Err(HubError::BadAnswer { url: url.clone(), reason });
                }
                offset
            }
            _ => 0,
        };
        Ok(Bytes { offset, body: response.into_body() })
    }

    /// The names of a repository's files, from its listing.
    pub fn names(&self, url: &str) -> Result<Vec<String>, HubError> {
        let response = self.get(url, 0, Some(self.metadata_timeout))?;
        Ok(names_in(self.read_info(url, url, response)?))
    }

    /// Asks for what is at `url`, from `offset` on, wherever it is redirected to; the token goes to the host of `url` alone.
    fn get(
        &self,
        url: &str,
        offset: u64,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, HubError> {
        let mut place = url.to_owned();
        for _ in 0..MOST_REDIRECTS {
            let request = self.agent.get(&place);
            let request = match is_same_host(url, &place) {
                true => self.plain(request),
                false => request.header(header::ACCEPT_ENCODING, "identity"),
            };
            let request = match offset {
                0 => request,
                offset => request.header(header::RANGE, format!("bytes={offset}-")),
            };
            let response = self.call(&place, request, timeout)?;
            match redirect(&place, &response) {
                Some(next) => place = next,
                None => return Ok(response),
            }
        }
        let reason = format!("more than {MOST_REDIRECTS} redirects");
        Err(HubError::BadAnswer { url: url.to_owned(), reason })
    }

    /// Sends a request the way that the environment says; errors name the proxy.
    fn call(
        &self,
        url: &str,
        request: RequestBuilder<WithoutBody>,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, HubError> {
        let way = self.proxies.of(url)?;
        let unreachable = |error: ureq::Error| {
            let way = way
                .map(|proxy| format!(" through the proxy of {}", proxy.variable))
                .unwrap_or_default();
            HubError::Unreachable { url: url.to_owned(), reason: format!("{error}{way}") }
        };
        let proxy = way
            .map(|proxy| ureq::Proxy::new(proxy.url.secret()))
            .transpose()
            .map_err(unreachable)?;
        let request = request.config().proxy(proxy).timeout_global(timeout).build();
        request.call().map_err(unreachable)
    }

    /// The listing in an answer about `what`.
    fn read_info(
        &self,
        url: &str,
        what: &str,
        mut response: Response<Body>,
    ) -> Result<RepoInfo, HubError> {
        self.accept(url, what, &response)?;
        let bad = |reason| HubError::BadAnswer { url: url.to_owned(), reason };
        // Unpacked, which ureq's own limit does not see.
        let text = outside::within(response.body_mut().as_reader(), LONGEST_LISTING_BYTES)
            .map_err(|error| HubError::Unreachable {
                url: url.to_owned(),
                reason: error.to_string(),
            })?
            .ok_or_else(|| bad(format!("it is longer than {LONGEST_LISTING_BYTES} bytes")))?;
        serde_json::from_slice(&text).map_err(|error| bad(error.to_string()))
    }

    /// Asks for the bytes as they are, with the token where there is one.
    fn plain(&self, request: RequestBuilder<WithoutBody>) -> RequestBuilder<WithoutBody> {
        let request = request.header(header::ACCEPT_ENCODING, "identity");
        match &self.token {
            Some(token) => {
                request.header(header::AUTHORIZATION, format!("Bearer {}", token.secret()))
            }
            None => request,
        }
    }

    /// An error, in the user's terms, for a status that is not success.
    fn accept(&self, url: &str, what: &str, response: &Response<Body>) -> Result<(), HubError> {
        let status = response.status();
        if status.is_success() {
            return Ok(());
        }
        let code = text(response.headers(), "x-error-code").unwrap_or_default();
        let message = text(response.headers(), "x-error-message").map(str::to_owned);
        let Some(gate) = &self.gate else {
            return Err(HubError::Status { url: url.to_owned(), status: status.as_u16() });
        };
        let is_hidden = code == "RepoNotFound" && !gate.is_known;
        Err(match status {
            _ if is_hidden => HubError::NotFound { what: what.to_owned(), message },
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => HubError::Refused {
                repository: gate.repository.clone(),
                status: status.as_u16(),
                message,
                page: gate.page.clone(),
                with_token: self.token.is_some(),
            },
            StatusCode::NOT_FOUND => HubError::NotFound { what: what.to_owned(), message },
            status => HubError::Status { url: url.to_owned(), status: status.as_u16() },
        })
    }
}

fn names_in(info: RepoInfo) -> Vec<String> {
    info.siblings.into_iter().map(|sibling| sibling.rfilename).collect()
}

fn text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Where a response redirects to.
fn redirect(url: &str, response: &Response<Body>) -> Option<String> {
    let location = text(response.headers(), header::LOCATION.as_str())?;
    let uri: Uri = url.parse().ok().filter(|_| response.status().is_redirection())?;
    let (scheme, authority) = (uri.scheme_str()?, uri.authority()?);
    Some(match location {
        _ if location.contains("://") => location.to_owned(),
        _ if location.starts_with("//") => format!("{scheme}:{location}"),
        _ if location.starts_with('/') => format!("{scheme}://{authority}{location}"),
        _ => {
            let folder = uri.path().rsplit_once('/').map_or("", |(folder, _)| folder);
            format!("{scheme}://{authority}{folder}/{location}")
        }
    })
}

fn is_same_host(url: &str, other: &str) -> bool {
    let place = |url: &str| {
        let uri: Uri = url.parse().ok()?;
        Some((uri.scheme_str()?.to_owned(), uri.authority()?.clone()))
    };
    place(url).is_some_and(|own| place(other) == Some(own))
}

fn read_header(url: String, response: &Response<Body>) -> Result<RemoteFile, HubError> {
    let headers = response.headers();
    let linked = text(headers, "x-linked-etag").or_else(|| text(headers, header::ETAG.as_str()));
    let etag = linked.unwrap_or_default().trim_start_matches("W/").trim_matches('"').to_owned();
    // The etag names a file of the cache.
    let is_name = (1..=128).contains(&etag.len())
        && etag.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if !is_name {
        return Err(HubError::BadAnswer { url, reason: format!("`{etag}` is not an etag") });
    }
    let size =
        text(headers, "x-linked-size").or_else(|| text(headers, header::CONTENT_LENGTH.as_str()));
    match size.and_then(|size| size.parse().ok()) {
        Some(size_bytes) => Ok(RemoteFile { url, etag, size_bytes }),
        None => {
            Err(HubError::BadAnswer { url, reason: "it does not give the file's size".to_owned() })
        }
    }
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
