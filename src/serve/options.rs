//! The options of a server: its address, access control and limits.

use std::net::IpAddr;
use std::path::PathBuf;
use std::time::Duration;

use axum::http::HeaderName;
use clap::builder::TypedValueParser;
use clap::{Args, Parser};
use serde_json::Value;

use crate::audit::AuditOptions;
use crate::diagnosis::Failure;

/// All options of `wardround serve` but its models and systems.
#[derive(Clone, Debug)]
pub struct ServeOptions {
    pub listen: Listen,
    /// The file of API keys; without it no key is needed.
    pub keys: Option<PathBuf>,
    /// Whether the server may listen on public addresses without keys and TLS.
    pub insecure: bool,
    pub tls: Option<TlsFiles>,
    /// Accepted host names besides IP addresses and `localhost`.
    pub allowed_hosts: Vec<String>,
    pub cors_origins: Vec<String>,
    pub limits: Limits,
    /// The random seed of requests without one; by default each gets another.
    pub default_seed: Option<u64>,
    /// The header in which a reverse proxy on this machine names the user who is logged in there.
    pub trusted_user_header: Option<HeaderName>,
    /// Whether a request with an unknown field is refused.
    pub strict: bool,
    /// Whether callers with names share the prefix cache.
    pub shares_prefixes: bool,
    /// The audit trail, if there is one.
    pub audit: Option<AuditOptions>,
    /// The arguments that models and systems were loaded with, for the audit trail.
    pub arguments: Value,
    pub metrics_prefix: String,
}

impl ServeOptions {
    /// The options of a server without a listener, for requests in process.
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
            shares_prefixes: false,
            audit: None,
            arguments: Value::Null,
            metrics_prefix: "wardround:".to_owned(),
        }
    }

    /// Whether the server may listen on addresses that other machines can reach.
    pub fn is_guarded(&self) -> bool {
        self.insecure || (self.keys.is_some() && self.tls.is_some())
    }
}

/// Refuses a public address without keys and TLS. `host` is the address of the socket, whoever bound it.
///
/// # Errors
/// An address that other machines can reach.
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

/// The socket to listen on, if systemd passes none.
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
    /// The authority that must have issued the certificates of clients.
    pub client_authority: Option<PathBuf>,
}

/// Limits that protect the server from overload.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Maximum sequences queued or running; a request counts its prompts times n
    #[arg(long = "max-queue", value_name = "N", default_value = "512", value_parser = number())]
    pub queued_sequences: usize,
    /// Maximum prompt tokens queued for prefill [default: 8 times the KV cache]
    #[arg(long = "max-queue-tokens", value_name = "TOKENS")]
    pub queued_tokens: Option<usize>,
    /// Maximum sequences per API key [default: half of --max-queue]
    #[arg(long = "max-per-key", value_name = "N", value_parser = number())]
    pub sequences_per_key: Option<usize>,
    /// Maximum concurrent cases of systems
    #[arg(long = "max-cases", value_name = "N", default_value = "8", value_parser = above_zero())]
    pub cases: usize,
    /// Maximum open connections
    #[arg(long = "max-connections", value_name = "N", default_value = "2048", value_parser = above_zero())]
    pub connections: usize,
    /// Maximum size of a request body in bytes
    #[arg(long = "max-body", value_name = "BYTES", default_value_t = 8 << 20)]
    pub body_bytes: usize,
    /// Maximum memory for all request bodies in progress and all answers not yet read, in bytes; a caller has half of it
    #[arg(long = "max-bodies", value_name = "BYTES", default_value_t = 256 << 20)]
    pub bodies_bytes: usize,
    /// Timeout for a request's headers in seconds; idle connections are closed after it too
    #[arg(long, value_name = "S", default_value = "20", value_parser = seconds(1))]
    pub header_timeout: Duration,
    /// Timeout for a request's body in seconds
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds(1))]
    pub body_timeout: Duration,
    /// Timeout for writing to a client that reads nothing, in seconds
    #[arg(long, value_name = "S", default_value = "60", value_parser = seconds(1))]
    pub stall_timeout: Duration,
    /// Grace period for running requests after SIGTERM, in seconds
    #[arg(long = "drain", value_name = "S", default_value = "30", value_parser = seconds(0))]
    pub drain_timeout: Duration,
}

fn number() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).map(|number| number as usize)
}

fn above_zero() -> impl TypedValueParser<Value = usize> {
    clap::value_parser!(u32).range(1..).map(|number| number as usize)
}

fn seconds(least: i64) -> impl TypedValueParser<Value = Duration> {
    let seconds = clap::value_parser!(u32).range(least..);
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}

/// Limits where nothing is said of them.
#[derive(Parser)]
struct Unsaid {
    #[command(flatten)]
    limits: Limits,
}

impl Default for Limits {
    fn default() -> Limits {
        Unsaid::parse_from([""]).limits
    }
}
