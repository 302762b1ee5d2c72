//! How a server is set up: where it listens, whom it lets in, and how much it takes on.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderName;

use serde_json::Value;

use crate::audit::AuditOptions;
use crate::diagnosis::Failure;

/// Everything that `wardround serve` can be told but for its models.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub listen: Listen,
    /// The file of API keys; without it everyone may ask.
    pub keys: Option<PathBuf>,
    /// Whether other machines may ask without keys and TLS.
    pub insecure: bool,
    pub tls: Option<TlsFiles>,
    /// Host names beside IP addresses and `localhost` under which the server may be asked.
    pub allowed_hosts: Vec<String>,
    /// Origins of web pages elsewhere whose scripts may ask.
    pub cors_origins: Vec<String>,
    pub limits: Limits,
    /// The seed of requests that send none; else each gets a random one.
    pub default_seed: Option<u64>,
    /// The header in which a reverse proxy on this machine names who is logged in there.
    pub trusted_user_header: Option<HeaderName>,
    /// Whether a request with an unknown field is refused.
    pub strict: bool,
    /// Whether prompts of different keys never share pages of the prefix index.
    pub isolate_keys: bool,
    /// Where it is logged what was done; `None`: nowhere.
    pub audit: Option<AuditOptions>,
    /// How models and systems were asked for, which the audit trail repeats.
    pub arguments: Value,
    /// Before the names of the metrics.
    pub metrics_prefix: String,
}

impl ServeOptions {
    /// For a program that asks itself, and listens to nobody.
    pub fn alone() -> ServeOptions {
        ServeOptions {
            listen: Listen::Unix { path: PathBuf::new() },
            keys: None,
            insecure: false,
            tls: None,
            allowed_hosts: Vec::new(),
            cors_origins: Vec::new(),
            limits: Limits::default(),
            default_seed: None,
            trusted_user_header: None,
            strict: false,
            isolate_keys: false,
            audit: None,
            arguments: Value::Null,
            metrics_prefix: "wardround:".to_owned(),
        }
    }

    /// Whether addresses that other machines reach may be listened on.
    pub fn is_guarded(&self) -> bool {
        self.insecure || (self.keys.is_some() && self.tls.is_some())
    }
}

/// Without keys and TLS only this machine may ask, unless told otherwise. `host`: where a socket listens, whoever bound it.
///
/// # Errors
/// An address that other machines reach.
pub fn refuse_open(host: IpAddr, is_guarded: bool) -> Result<(), Failure> {
    if is_guarded || host.to_canonical().is_loopback() {
        return Ok(());
    }
    Err(Failure::usage(
        format!(
            "{host} can be reached from other machines, and the server has not both keys and TLS"
        ),
        "give --keys, --tls-cert and --tls-key, listen on 127.0.0.1 behind a reverse proxy, or say --insecure",
    ))
}

/// What the server listens on, unless the environment hands it a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Listen {
    Tcp { host: IpAddr, port: u16 },
    Unix { path: PathBuf },
}

/// PEM files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Clients must show a certificate of this authority.
    pub client_authority: Option<PathBuf>,
}

/// How much is taken on.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Sequences that wait or run.
    pub queued_sequences: usize,
    /// Prompt tokens that are not yet computed; `None`: eight times the KV cache.
    pub queued_tokens: Option<usize>,
    /// Sequences of one key; `None`: half of all.
    pub sequences_per_key: Option<usize>,
    /// Cases of systems at work at once.
    pub cases: usize,
    pub connections: usize,
    pub body_bytes: usize,
    /// Until a request's head is there; it also ends idle connections.
    pub header_timeout: Duration,
    /// Until a request's body is there.
    pub body_timeout: Duration,
    /// How long a client may take no byte of an answer.
    pub stall_timeout: Duration,
    /// How long running requests may go on after a signal to end.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            queued_sequences: 512,
            queued_tokens: None,
            sequences_per_key: None,
            cases: 8,
            connections: 2048,
            body_bytes: 8 << 20,
            header_timeout: Duration::from_secs(20),
            body_timeout: Duration::from_secs(30),
            stall_timeout: Duration::from_secs(60),
            drain_timeout: Duration::from_secs(30),
        }
    }
}
