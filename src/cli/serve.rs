//! `serve`: serves models and systems through an OpenAI-compatible HTTP API.

pub mod sources;
mod systems;

use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::process::Command;

use clap::Args;

use self::sources::Sources;
use self::systems::SystemFlags;
use super::audit::AuditFlags;
use super::options::HubFlags;
use super::sandboxed::{Paths, folder_of};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::Hardware;
use crate::serve::options::Listen;
use crate::serve::{ServeOptions, serve};

#[derive(Debug, Args)]
pub struct Serve {
    /// The models, encoders and rerankers among them: cards, hub ids or directories; NAME= gives one another name in the API
    #[arg(required = true, value_name = "[NAME=]MODEL")]
    models: Vec<String>,
    #[command(flatten)]
    options: ServeOptions,
    #[command(flatten)]
    systems: SystemFlags,
    #[command(flatten)]
    audit: AuditFlags,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    hub: HubFlags,
}

impl Serve {
    /// It is sealed once it listens.
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        self.options.listen.refuse_open()?;
        let hub = self.hub.options(true)?;
        if hub.fetch_refusal().is_some() {
            leave_secrets()?;
        }
        let sources = Sources::check(&self.models, &self.systems, &self.hardware, hub.clone())?;
        // Keys and certificates are read again on SIGHUP: keys are written in place, certificates by whoever renews them.
        let Listen { keys, tls_cert, tls_key, .. } = &self.options.listen;
        let renewed = || tls_cert.iter().chain(tls_key);
        let paths = given.read(keys).read(renewed().map(|file| folder_of(file)));
        let paths = paths.read(renewed().filter_map(|file| file.canonicalize().ok()));
        let paths = paths.read(&self.systems.prompts);
        let paths = sources.within(paths, &hub)?.store(&self.hardware.calls)?;
        let paths = self.audit.within(paths)?;
        let audit = self.audit.options();
        let options = ServeOptions { audit, ..self.options };
        let enter = || {
            paths.enter()?.iter().for_each(console::note);
            Ok(())
        };
        serve(options, enter, move || sources.load())
    }
}

/// Starts this program anew without the variables that open doors elsewhere, if there are some. Whoever takes the process over could read
/// them as long as it lives, and a server that asks nobody needs none.
fn leave_secrets() -> std::io::Result<()> {
    let words = ["TOKEN", "SECRET", "PASSWORD", "API_KEY", "ACCESS_KEY"];
    let is_secret = |name: &OsString| {
        name.to_str().is_some_and(|name| words.iter().any(|word| name.contains(word)))
    };
    let mut again = Command::new(std::env::current_exe()?);
    again.args(std::env::args_os().skip(1));
    let secrets: Vec<OsString> =
        std::env::vars_os().map(|(name, _)| name).filter(is_secret).collect();
    for name in &secrets {
        again.env_remove(name);
    }
    if secrets.is_empty() { Ok(()) } else { Err(again.exec()) }
}
