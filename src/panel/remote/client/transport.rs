//! One HTTP exchange, within limits of time and length; the answer is not interpreted here.

use std::io;
use std::time::{Duration, SystemTime};

use serde_json::Value;
use ureq::http::{Response, header};
use ureq::{Agent, Body};

use super::super::{ApiKey, RemoteOptions};
use super::complaint::Complaint;
use super::reply::Defect;
use super::retry;

/// The HTTP client of one endpoint.
#[derive(Clone, Debug)]
pub struct Transport {
    agent: Agent,
    key: Option<ApiKey>,
    most_bytes: u64,
}

/// Whatever came back whole.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
    pub body: Vec<u8>,
}

/// Why nothing came back whole.
#[derive(Debug)]
pub enum Failure {
    /// The connection, the time or a part of the answer.
    Lost(String),
    /// More bytes than an answer may have.
    TooLong,
}

impl Transport {
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where a connection to a panel's member may be opened"
    )]
    pub fn new(options: &RemoteOptions) -> Transport {
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            // A key goes where the user sent it and nowhere else.
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(concat!("wardround/", env!("CARGO_PKG_VERSION")))
            .max_idle_connections_per_host(options.max_in_flight)
            .timeout_resolve(Some(options.connect_timeout))
            .timeout_connect(Some(options.connect_timeout))
            .timeout_global(Some(options.timeout))
            .build()
            .new_agent();
        Transport { agent, key: options.key.clone(), most_bytes: options.most_bytes }
    }

    /// Posts a body of JSON, or asks without one.
    pub fn send(&self, url: &str, body: Option<&[u8]>) -> Result<Answer, Failure> {
        let bearer = self.key.as_ref().map(|key| format!("Bearer {}", key.secret()));
        let response = match (body, bearer) {
            (None, None) => self.agent.get(url).call(),
            (None, Some(bearer)) => {
                self.agent.get(url).header(header::AUTHORIZATION, bearer).call()
            }
            (Some(body), bearer) => {
                let request = self
                    .agent
                    .post(url)
                    .content_type("application/json")
                    .header(header::ACCEPT, "application/json");
                match bearer {
                    None => request.send(body),
                    Some(bearer) => request.header(header::AUTHORIZATION, bearer).send(body),
                }
            }
        };
        self.receive(response.map_err(lost)?)
    }

    fn receive(&self, mut response: Response<Body>) -> Result<Answer, Failure> {
        let headers = response.headers();
        let text = |name: &str| headers.get(name)?.to_str().ok();
        let milliseconds = text("retry-after-ms").and_then(|value| value.parse().ok());
        let retry_after = milliseconds
            .map(Duration::from_millis)
            .or_else(|| retry::retry_after(text(header::RETRY_AFTER.as_str())?, SystemTime::now()));
        let status = response.status().as_u16();
        let limited = response.body_mut().with_config().limit(self.most_bytes);
        let body = limited.read_to_vec().map_err(lost)?;
        Ok(Answer { status, retry_after, body })
    }

    /// Takes the key out of a text that a server wrote: some repeat what they were sent.
    pub fn redact(&self, text: String) -> String {
        match &self.key {
            Some(key) => text.replace(key.secret(), "***"),
            None => text,
        }
    }
}

impl Answer {
    /// The JSON of a success, or what is wrong with it.
    pub fn read(&self) -> Result<Value, Defect> {
        if !(200..300).contains(&self.status) {
            return Err(Defect::Complaint(Complaint::read(self.status, &self.body)));
        }
        serde_json::from_slice(&self.body)
            .map_err(|error| Defect::Broken(format!("the answer is not JSON: {error}")))
    }
}

fn lost(error: ureq::Error) -> Failure {
    match error {
        ureq::Error::BodyExceedsLimit(_) => Failure::TooLong,
        // What ureq itself adds to an error of the operating system says nothing.
        ureq::Error::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            Failure::Lost("the connection ended early".to_owned())
        }
        error => Failure::Lost(error.to_string()),
    }
}
