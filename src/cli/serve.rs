//! `serve`: serves models and systems through an OpenAI-compatible HTTP API.

pub mod sources;
mod systems;

use clap::Args;
use serde_json::json;

use self::sources::Sources;
use super::audit::AuditFlags;
use super::flags::SystemFlags;
use super::options::HubFlags;
use super::sandboxed::{Paths, SandboxFlag, folder_of};
use crate::calls::Store;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::Hardware;
use crate::sandbox::Network;
use crate::serve::options::{Listen, refuse_open};
use crate::serve::{Loaded, ServeOptions, serve};

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
    sandbox: SandboxFlag,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    hub: HubFlags,
}

impl Serve {
    pub fn run(mut self) -> Result<(), Failure> {
        // A public address without protection is refused before models are searched; a socket from systemd is checked when it is taken.
        let listen = &self.options.listen;
        refuse_open(listen.host, listen.is_guarded() || listen.unix.is_some())?;
        self.systems.read_files()?;
        let hub = self.hub.options(true)?;
        let mut sources = Sources::check(&self.models, &self.systems, &self.hardware, hub.clone())?;
        let audit = self.audit.options();
        let mut paths = paths(&self.options.listen)?
            .models(sources.named.iter().map(|named| &named.model), &hub)?
            .encoders(sources.encoders.iter().map(|encoder| encoder.directory.as_path()));
        paths = self.systems.paths(paths);
        if let Some(calls) = &self.hardware.calls.directory {
            Store::make(calls)?;
            paths = paths.write_in(calls);
        }
        if let Some(options) = &audit {
            paths = paths.write(&options.directory)?;
        }
        // Entered before the first thread starts, which inherits it.
        let mut entered = paths.enter(self.sandbox, &self.hardware.compute.on.device)?;
        // Mistakes are reported before the socket is bound.
        sources.read_exemplars()?;
        let arguments = json!({"models": self.models, "systems": self.systems});
        let options = ServeOptions { audit, arguments, ..self.options };
        let seal = move || {
            entered.seal()?;
            let sandbox = entered.report();
            sandbox.iter().for_each(console::note);
            Ok((entered, sandbox))
        };
        serve(options, seal, move |(_entered, sandbox)| Ok(Loaded { sandbox, ..sources.load()? }))
    }
}

/// The files that the listener reads and writes; keys and certificates are read again on SIGHUP.
fn paths(listen: &Listen) -> Result<Paths, Failure> {
    let files = [&listen.keys, &listen.tls_cert, &listen.tls_key, &listen.tls_client_ca];
    let paths = Paths::default().read_beside(files.into_iter().flatten());
    match &listen.unix {
        Some(path) if !folder_of(path).is_dir() => Err(Failure::usage(
            format!("cannot listen on {}: its directory does not exist", path.display()),
            "make the directory, with access for those who may connect",
        )),
        Some(path) => Ok(paths.network(Network::Listen { port: None }).write_in(&folder_of(path))),
        None => Ok(paths.network(Network::Listen { port: Some(listen.port) })),
    }
}
