//! Requests for a repository's listing, or a file's bytes from an offset on.

use std::time::Duration;

use serde::Deserialize;
use ureq::config::RedirectAuthHeaders;
use ureq::http::{Response, StatusCode};
use ureq::{Agent, Body};

use super::super::cache::is_commit;
use super::super::proxy::{self, PROXY};
use super::super::{HubError, HubOptions, Repository, Token};
use crate::digest::is_sha256;
use crate::outside;

const MOST_REDIRECTS: u32 = 5;
const LONGEST_LISTING_BYTES: u64 = 64 << 20;

/// A client of one host.
pub struct Client {
    agent: Agent,
    is_proxied: bool,
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
    siblings: Vec<ListedFile>,
}

/// What the hub says of a file; a mirror may know no more than its name.
#[derive(Deserialize)]
pub struct ListedFile {
    rfilename: String,
    pub size: Option<u64>,
    /// Git's sum.
    #[serde(rename = "blobId")]
    blob: Option<String>,
    lfs: Option<LargeFile>,
}

#[derive(Deserialize)]
struct LargeFile {
    sha256: String,
}

impl Listing {
    pub fn file(&self, name: &str) -> Option<&ListedFile> {
        self.siblings.iter().find(|sibling| sibling.rfilename == name)
    }

    /// What names folders and files of the cache.
    fn sums(&self) -> impl Iterator<Item = &str> {
        let blobs = self.siblings.iter().filter_map(ListedFile::blob);
        std::iter::once(&*self.commit).chain(blobs)
    }
}

impl ListedFile {
    /// That of a large file.
    pub fn sha256(&self) -> Option<&str> {
        self.lfs.as_ref().map(|large| large.sha256.as_str())
    }

    /// What the file is called among the blobs of a cache: a sha256 for a large file, git's sum for a small one.
    pub fn blob(&self) -> Option<&str> {
        self.sha256().or(self.blob.as_deref())
    }
}

impl Client {
    /// A client that waits as long as the options say, and says by the token who asks.
    ///
    /// # Errors
    /// A proxy that cannot be used.
    #[expect(clippy::disallowed_methods, reason = "the one place where a connection may be opened")]
    pub fn new(
        options: &HubOptions,
        token: Option<Token>,
        model: Option<Repository>,
    ) -> Result<Self, HubError> {
        let proxy = proxy::open(options.proxy.as_ref())?;
        let is_proxied = proxy.is_some();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .proxy(proxy)
            .max_redirects(MOST_REDIRECTS)
            // Who asks is said to the hub, and not to its store.
            .redirect_auth_headers(RedirectAuthHeaders::SameHost)
            .user_agent(concat!("wardround/", env!("CARGO_PKG_VERSION")))
            .timeout_resolve(Some(options.timeout))
            .timeout_connect(Some(options.timeout))
            .timeout_recv_response(Some(options.timeout))
            .timeout_per_read(Some(options.timeout))
            .build()
            .new_agent();
        let bearer = token.map(|token| Token(format!("Bearer {}", token.secret())));
        Ok(Self {
            agent,
            is_proxied,
            authorization: bearer,
            timeout: options.timeout,
            pause: options.timeout / 30,
            model,
        })
    }

    /// Resolves the revision of `what` and lists its files, with their sums.
    pub fn list(&self, url: &str, what: &str) -> Result<Listing, HubError> {
        let mut response = self.ask(url, 0, Some(self.timeout))?;
        self.accept(url, what, &response)?;
        // Unpacked, which ureq's own limit does not see.
        let text = outside::within(response.body_mut().as_reader(), LONGEST_LISTING_BYTES)
            .map_err(|error| unreachable(url, error))?
            .ok_or_else(|| bad(url, format!("it is longer than {LONGEST_LISTING_BYTES} bytes")))?;
        let listing: Listing =
            serde_json::from_slice(&text).map_err(|error| bad(url, error.to_string()))?;
        let is_sum = |sum: &str| is_commit(sum) || is_sha256(sum);
        let other = listing.sums().find(|sum| !is_sum(sum));
        let other = other.map(|other| bad(url, format!("`{other}` is the sum of nothing")));
        other.map_or(Ok(listing), Err)
    }

    /// Asks for a file's bytes from `offset` on, wherever it is redirected to, and says where they begin: a server that cannot give a part gives the whole.
    pub fn bytes(&self, url: &str, offset: u64) -> Result<(u64, Body), HubError> {
        let response = self.ask(url, offset, None)?;
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

    /// Asks for what is at `url` as it is; errors say that a proxy was asked.
    fn ask(
        &self,
        url: &str,
        offset: u64,
        timeout: Option<Duration>,
    ) -> Result<Response<Body>, HubError> {
        let mut request = self.agent.get(url).header("accept-encoding", "identity");
        if offset > 0 {
            request = request.header("range", format!("bytes={offset}-"));
        }
        if let Some(who) = &self.authorization {
            request = request.header("authorization", who.secret());
        }
        let response = request.config().timeout_global(timeout).build().call();
        response.map_err(|error| match self.is_proxied {
            true => unreachable(url, format!("{error} through the proxy of {PROXY}")),
            false => unreachable(url, error),
        })
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
