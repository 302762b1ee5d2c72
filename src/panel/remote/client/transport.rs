//! One HTTP exchange, within limits of time and length; the answer is not interpreted here.

use std::io;
use std::time::Duration;

use serde::de::DeserializeOwned;
use ureq::http::{Response, header};
use ureq::{Agent, Body, RequestBuilder};

use super::super::{ApiKey, RemoteOptions};
use super::failure::{Failure, ServerError};
use crate::hub::proxy::{Proxy, ProxyError};
use crate::outside;

/// A shorter key is a word, given to an endpoint that asks for none.
const SHORTEST_SECRET: usize = 12;

/// The HTTP client of one endpoint.
#[derive(Clone, Debug)]
pub struct Transport {
    agent: Agent,
    /// What its requests go through.
    proxy: Option<Proxy>,
    key: Option<ApiKey>,
    most_bytes: u64,
}

/// A complete response, whatever its status.
#[derive(Debug)]
pub struct Answer {
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
    pub fn new(options: &RemoteOptions, base: &str) -> Result<Transport, ProxyError> {
        let way = options.proxies.of(base)?;
        let proxy = way.map(ureq_proxy).transpose()?;
        let agent = Agent::config_builder()
            .proxy(proxy)
            .http_status_as_error(false)
            // A redirect must not carry the key to another server.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("wardround/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections_per_host(options.max_in_flight)
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_global(Some(options.timeout))
            .build()
            .new_agent();
        let (key, most_bytes) = (options.key.clone(), options.most_bytes);
        Ok(Transport { agent, proxy: way.cloned(), key, most_bytes })
    }

    /// POSTs a body of JSON; GETs where there is none.
    pub fn send(&self, url: &str, body: Option<&[u8]>) -> Result<Answer, Failure> {
        let response = match body {
            None => self.authorized(self.agent.get(url)).call(),
            Some(body) => self
                .authorized(self.agent.post(url))
                .content_type("application/json")
                .header(header::ACCEPT, "application/json")
                .send(body),
        };
        self.receive(response.map_err(|error| self.lost(error))?)
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header(header::AUTHORIZATION, format!("Bearer {}", key.secret())),
            None => request,
        }
    }

    fn receive(&self, mut response: Response<Body>) -> Result<Answer, Failure> {
        let asked = response.headers().get(header::RETRY_AFTER);
        let seconds = asked.and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let retry_after = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
        let status = response.status().as_u16();
        // ureq's own limit is on the bytes before they are unpacked.
        let body = outside::within(response.body_mut().as_reader(), self.most_bytes)
            .map_err(|error| self.lost(error.into()))?;
        Ok(Answer { status, retry_after, body: body.ok_or(Failure::TooLong)? })
    }

    /// Why there is no response, and through which proxy.
    fn lost(&self, error: ureq::Error) -> Failure {
        let reason = match error {
            // ureq's own message for this does not say what happened.
            ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                "the connection ended early".to_owned()
            }
            error => error.to_string(),
        };
        Failure::Lost(match &self.proxy {
            Some(proxy) => format!("{reason} through the proxy of {}", proxy.variable),
            None => reason,
        })
    }

    /// A server's text with `***` in place of the API key, which some servers repeat.
    pub fn redact(&self, text: &str) -> String {
        match &self.key {
            Some(key) => text.replace(key.secret(), "***"),
            None => text.to_owned(),
        }
    }

    /// The same of what a model says, unless the key is a word that it may mean.
    pub fn redact_answer(&self, text: String) -> String {
        let is_word = self.key.as_ref().is_none_or(|key| key.secret().len() < SHORTEST_SECRET);
        if is_word { text } else { self.redact(&text) }
    }
}

impl Answer {
    /// What a response with a success status holds.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        if !(200..300).contains(&self.status) {
            return Err(Failure::Refused(ServerError::read(self.status, &self.body)));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Failure::Lost(format!("the answer cannot be read: {error}")))
    }
}

fn ureq_proxy(proxy: &Proxy) -> Result<ureq::Proxy, ProxyError> {
    let unusable = |_| ProxyError::Unusable { variable: proxy.variable };
    ureq::Proxy::new(proxy.url.secret()).map_err(unusable)
}
