//! The options of a server: its address, access control and limits.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use clap::builder::TypedValueParser;

use crate::audit::AuditOptions;
use crate::diagnosis::Failure;

/// All options of `wardround serve` but its models and systems.
#[derive(Clone, Debug, Args)]
pub struct ServeOptions {
    /// Random seed of requests that send none [default: a random one for each]
    #[arg(long, value_name = "S")]
    pub default_seed: Option<u64>,
    #[command(flatten)]
    pub listen: Listen,
    #[command(flatten)]
    pub limits: Limits,
    #[command(flatten)]
    pub audit: Option<AuditOptions>,
}

/// The address that the server listens on, and who may connect.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Network")]
pub struct Listen {
    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port to listen on; 0 for any that is free
    #[arg(long, default_value_t = 8000)]
    pub port: u16,
    /// File of API keys, as `wardround keys add` makes it
    #[arg(long, value_name = "FILE", env = "WARDROUND_KEYS")]
    pub keys: Option<PathBuf>,
    /// Allow listening on addresses of other machines, without TLS: behind a proxy that has it
    #[arg(long)]
    pub insecure: bool,
    /// Accepted host name, besides IP addresses and localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    pub allow_host: Vec<String>,
}

impl Listen {
    /// Refuses a public address: what is sent to it can be read on its way.
    ///
    /// # Errors
    /// An address that other machines can reach.
    pub fn refuse_open(&self) -> Result<(), Failure> {
        let host = self.host;
        if self.insecure || host.to_canonical().is_loopback() {
            return Ok(());
        }
        Err(Failure::usage(
            format!("{host} can be reached from other machines, and the server speaks no TLS"),
            "listen on 127.0.0.1 behind a reverse proxy with TLS, or say --insecure",
        ))
    }
}

/// Limits that protect the server from overload.
#[derive(Clone, Copy, Debug, Args)]
#[command(next_help_heading = "Limits")]
pub struct Limits {
    /// Maximum sequences queued or running; a request counts its prompts times n, and a key has half of them
    #[arg(long = "max-queue", value_name = "N", default_value = "512")]
    pub queued_sequences: NonZeroUsize,
    /// Maximum concurrent cases of systems
    #[arg(long = "max-cases", value_name = "N", default_value = "8")]
    pub cases: NonZeroUsize,
    /// Maximum size of a request body in bytes
    #[arg(long = "max-body", value_name = "BYTES", default_value_t = 8 << 20)]
    pub body_bytes: usize,
    /// Maximum memory for all request bodies in progress and all answers not yet read, in bytes
    #[arg(long = "max-bodies", value_name = "BYTES", default_value_t = 256 << 20)]
    pub bodies_bytes: usize,
    /// Timeout of a client in seconds: for a head, for a body, for reading, and between requests
    #[arg(long, value_name = "S", default_value = "30", value_parser = seconds(1))]
    pub client_timeout: Duration,
    /// Grace period for running requests after SIGTERM, in seconds
    #[arg(long = "drain", value_name = "S", default_value = "30", value_parser = seconds(0))]
    pub drain_timeout: Duration,
}

fn seconds(least: i64) -> impl TypedValueParser<Value = Duration> {
    let seconds = clap::value_parser!(u32).range(least..);
    seconds.map(|seconds| Duration::from_secs(seconds.into()))
}
