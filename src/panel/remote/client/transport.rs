//! One HTTP exchange, within limits of time and length; the answer is not interpreted here.

use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::http::header;
use ureq::{Agent, RequestBuilder};

use super::super::{Address, ApiKey, RemoteOptions};
use super::reply::{NoAnswer, ServerError};
use crate::hub::HubError;
use crate::hub::proxy::{self, PROXY};
use crate::outside;

/// Of name resolution, and again of the connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Of a response.
const MOST_BYTES: u64 = 16 << 20;

/// The HTTP client of one endpoint.
pub struct Transport {
    agent: Agent,
    is_proxied: bool,
    key: Option<ApiKey>,
}

/// A complete response, whatever its status.
#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    /// How long the server asks to wait before the next request; a date is not read.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

impl Transport {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where a connection to a panel's member may be opened"
    )]
    pub fn new(options: &RemoteOptions, address: &Address) -> Result<Transport, HubError> {
        // This machine is asked directly: a proxy would ask another.
        let proxy = options.proxy.as_ref().filter(|_| !address.is_loopback());
        let proxy = proxy::open(proxy)?;
        let is_proxied = proxy.is_some();
        let agent = Agent::config_builder()
            .proxy(proxy)
            .http_status_as_error(false)
            // A redirect must not carry the key to another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("wardround/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections_per_host(options.max_in_flight)
            .timeout_resolve(Some(CONNECT_TIMEOUT))
            .timeout_connect(Some(CONNECT_TIMEOUT))
            .timeout_global(Some(options.timeout))
            .build()
            .new_agent();
        Ok(Transport { agent, is_proxied, key: options.key.clone() })
    }

    /// POSTs a body of JSON; GETs where there is none.
    pub fn send(&self, url: &str, body: Option<&[u8]>) -> Result<HttpAnswer, NoAnswer> {
        self.exchange(url, body).map_err(|error| {
            NoAnswer::Lost(match self.is_proxied {
                true => format!("{error} through the proxy of {PROXY}"),
                false => error.to_string(),
            })
        })
    }

    fn exchange(&self, url: &str, body: Option<&[u8]>) -> Result<HttpAnswer, ureq::Error> {
        let mut response = match body {
            None => self.authorized(self.agent.get(url)).call(),
            Some(body) => self
                .authorized(self.agent.post(url))
                .content_type("application/json")
                .header(header::ACCEPT, "application/json")
                .send(body),
        }?;
        let asked = response.headers().get(header::RETRY_AFTER);
        let seconds = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let status = response.status().as_u16();
        // ureq's own limit is on the bytes before they are unpacked.
        let body = outside::within(response.body_mut().as_reader(), MOST_BYTES)?;
        let body = body.ok_or(ureq::Error::BodyExceedsLimit(MOST_BYTES))?;
        Ok(HttpAnswer { status, retry_after, body })
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header(header::AUTHORIZATION, format!("Bearer {}", key.secret())),
            None => request,
        }
    }
}

impl HttpAnswer {
    /// What a response with a success status holds.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, NoAnswer> {
        if !(200..300).contains(&self.status) {
            return Err(NoAnswer::Refused(ServerError::read(self.status, &self.body)));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| NoAnswer::Lost(format!("the answer cannot be read: {error}")))
    }
}
