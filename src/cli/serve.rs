//! `serve`: serves models and systems through an OpenAI-compatible HTTP API.

pub mod sources;
mod systems;

use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::HeaderName;
use clap::Args;
use serde_json::json;

use self::sources::Sources;
use super::audit::flags::AuditFlags;
use super::flags::SystemFlags;
use super::options::HubFlags;
use super::sandboxed::{Paths, SandboxFlag, folder_of};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::Hardware;
use crate::sandbox::Network;
use crate::selftest::last::LastSelftest;
use crate::serve::options::{Limits, Listen, TlsFiles, refuse_open};
use crate::serve::{Loaded, ServeOptions, serve};

#[derive(Debug, Args)]
pub struct Serve {
    /// The models: cards, hub ids or directories; NAME= gives one another name in the API
    #[arg(required = true, value_name = "[NAME=]MODEL")]
    models: Vec<String>,
    /// Random seed of requests that send none [default: a random one for each]
    #[arg(long, value_name = "S")]
    default_seed: Option<u64>,
    /// Refuse requests with unknown fields, instead of listing them in the response
    #[arg(long)]
    strict: bool,
    /// Let all callers share the prefix cache: faster, and each can tell what others asked
    #[arg(long)]
    share_prefixes: bool,
    /// Prefix of the metrics' names; with `vllm:` dashboards for vLLM work
    #[arg(long, value_name = "PREFIX", default_value = "wardround:", value_parser = metrics_prefix)]
    metrics_prefix: String,
    #[command(flatten)]
    listen: ListenFlags,
    #[command(flatten)]
    limits: Limits,
    #[command(flatten)]
    systems: SystemFlags,
    #[command(flatten)]
    audit: AuditFlags,
    #[command(flatten)]
    sandbox: SandboxFlag,
    /// Exit when the parent process does
    #[arg(long, hide = true)]
    end_with_parent: bool,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    hub: HubFlags,
}

/// The address that the server listens on, and who may connect.
#[derive(Clone, Debug, Args)]
#[command(next_help_heading = "Network")]
struct ListenFlags {
    /// IP address to listen on
    #[arg(long, value_name = "IP", default_value = "127.0.0.1", value_parser = host)]
    host: IpAddr,
    /// Port to listen on; 0 for any that is free
    #[arg(long, default_value_t = 8000)]
    port: u16,
    /// Listen on a Unix socket instead
    #[arg(long, value_name = "PATH")]
    unix: Option<PathBuf>,
    /// File of API keys, as `wardround keys add` makes it
    #[arg(long, value_name = "FILE", env = "WARDROUND_KEYS")]
    keys: Option<PathBuf>,
    /// TLS certificate chain, PEM
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    tls_cert: Option<PathBuf>,
    /// TLS private key, PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificate authority of client certificates, PEM: clients without one are refused (mutual TLS)
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_client_ca: Option<PathBuf>,
    /// Allow listening on non-loopback addresses without keys and TLS
    #[arg(long)]
    insecure: bool,
    /// Accepted host name, besides IP addresses and localhost; may be repeated
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Header in which a reverse proxy on this machine names who is logged in there, such as x-remote-user; it counts as a key of role
    /// clinician
    #[arg(long, value_name = "NAME", value_parser = header_name)]
    trust_user_header: Option<HeaderName>,
    /// Allowed CORS origin, such as https://chat.example; may be repeated
    #[arg(long, value_name = "ORIGIN", value_parser = origin)]
    cors_origin: Vec<String>,
}

/// Has the kernel kill this process when its parent process ends.
#[cfg(target_os = "linux")]
fn end_with_parent() -> Result<(), Failure> {
    use rustix::process::{Signal, set_parent_process_death_signal};
    Ok(set_parent_process_death_signal(Some(Signal::KILL)).map_err(std::io::Error::from)?)
}

/// Not available: the server of a benchmark that is killed keeps running.
#[cfg(not(target_os = "linux"))]
fn end_with_parent() -> Result<(), Failure> {
    Ok(())
}

impl Serve {
    pub fn run(self) -> Result<(), Failure> {
        if self.end_with_parent {
            end_with_parent()?;
        }
        let mut sources = self.sources()?;
        let audit = self.audit.options();
        let hub = self.hub.options(true)?;
        let mut paths =
            self.listen.paths()?.models(sources.named.iter().map(|named| &named.model), &hub)?;
        paths = self.systems.paths(paths);
        if let Some(options) = &audit {
            paths = paths.write(&options.directory)?;
        }
        let selftest = std::env::current_exe().ok().and_then(|own| LastSelftest::of(&own));
        // Entered before the first thread starts, which inherits it.
        let mut entered = paths.enter(self.sandbox, &self.hardware.compute.on.device)?;
        // Mistakes are reported before the socket is bound.
        sources.read_exemplars()?;
        let arguments = json!({"models": self.models, "systems": self.systems});
        let options = ServeOptions {
            arguments,
            listen: self.listen.listen(),
            tls: self.listen.tls(),
            keys: self.listen.keys,
            insecure: self.listen.insecure,
            allowed_hosts: self.listen.allow_host,
            cors_origins: self.listen.cors_origin,
            limits: self.limits,
            trusted_user_header: self.listen.trust_user_header,
            default_seed: self.default_seed,
            strict: self.strict,
            shares_prefixes: self.share_prefixes,
            audit,
            metrics_prefix: self.metrics_prefix,
        };
        let seal = move || {
            entered.seal()?;
            let sandbox = entered.report();
            sandbox.iter().for_each(console::note);
            Ok((entered, sandbox))
        };
        serve(options, seal, move |(_entered, sandbox)| {
            Ok(Loaded { sandbox, selftest, ..sources.load()? })
        })
    }

    /// The models and systems to serve, checked and not loaded.
    pub fn sources(&self) -> Result<Sources, Failure> {
        self.listen.refuse_open()?;
        Sources::check(&self.models, &self.systems, &self.hardware, self.hub.options(true)?)
    }
}

impl ListenFlags {
    fn listen(&self) -> Listen {
        match &self.unix {
            Some(path) => Listen::Unix { path: path.clone() },
            None => Listen::Tcp { host: self.host, port: self.port },
        }
    }

    /// The files that the listener reads and writes; keys and certificates are read again on SIGHUP.
    fn paths(&self) -> Result<Paths, Failure> {
        let files = [&self.keys, &self.tls_cert, &self.tls_key, &self.tls_client_ca];
        let paths = Paths::default().read_beside(files.into_iter().flatten());
        match &self.unix {
            Some(path) if !folder_of(path).is_dir() => Err(Failure::usage(
                format!("cannot listen on {}: its directory does not exist", path.display()),
                "make the directory, with access for those who may connect",
            )),
            Some(path) => {
                Ok(paths.network(Network::Listen { port: None }).write_in(&folder_of(path)))
            }
            None => Ok(paths.network(Network::Listen { port: Some(self.port) })),
        }
    }

    fn tls(&self) -> Option<TlsFiles> {
        Some(TlsFiles {
            certificate: self.tls_cert.clone()?,
            key: self.tls_key.clone()?,
            client_authority: self.tls_client_ca.clone(),
        })
    }

    /// Refuses an unprotected address before models are searched; a socket from systemd is checked when it is taken.
    fn refuse_open(&self) -> Result<(), Failure> {
        let is_guarded = self.insecure || (self.keys.is_some() && self.tls_cert.is_some());
        refuse_open(self.host, is_guarded || self.unix.is_some())
    }
}

/// An origin as browsers send it.
fn origin(text: &str) -> Result<String, String> {
    let authority = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let is_plain = |c: char| c.is_ascii_alphanumeric() || ".-:[]".contains(c);
    match authority.is_some_and(|name| !name.is_empty() && name.chars().all(is_plain)) {
        true => Ok(text.to_owned()),
        false => Err("expected a scheme and a host alone, such as https://chat.example".to_owned()),
    }
}

fn host(text: &str) -> Result<IpAddr, String> {
    let text = if text == "localhost" { "127.0.0.1" } else { text };
    text.parse().map_err(|_| "expected an IP address, such as 127.0.0.1 or 0.0.0.0".to_owned())
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    text.parse().map_err(|_| "expected the name of a header".to_owned())
}

fn metrics_prefix(text: &str) -> Result<String, String> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    let begins = text.chars().next().is_none_or(|first| !first.is_ascii_digit());
    match begins && text.chars().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err("expected letters, digits, `_` and `:`".to_owned()),
    }
}
