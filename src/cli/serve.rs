//! `serve`: serves models and systems through an OpenAI-compatible HTTP API.

pub mod sources;
mod systems;

use clap::Args;

use self::sources::Sources;
use self::systems::SystemFlags;
use super::options::{HubFlags, hidden};
use super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::hardware::Hardware;
use crate::serve::{ServeOptions, serve};

// No endpoint is served again.
#[derive(Debug, Args)]
#[command(mut_args(hidden(["remote_attempts"])))]
pub struct Serve {
    /// The models, encoders among them: cards, hub ids or directories; NAME= gives one another name in the API
    #[arg(required = true, value_name = "[NAME=]MODEL")]
    models: Vec<String>,
    #[command(flatten)]
    options: ServeOptions,
    #[command(flatten)]
    systems: SystemFlags,
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
        let sources = Sources::check(&self.models, &self.systems, &self.hardware, hub.clone())?;
        // Keys are read again on SIGHUP: they are written in place.
        let paths = given.read(&self.options.listen.keys).read(&self.systems.prompts);
        let paths = sources.within(paths, &hub)?.store(self.hardware.calls.as_ref())?;
        let paths = match &self.options.audit {
            Some(audit) => {
                audit.make_directory()?;
                paths.write(&audit.directory)?
            }
            None => paths,
        };
        let enter = || {
            paths.enter()?.iter().for_each(console::note);
            Ok(())
        };
        serve(self.options, enter, move || sources.load())
    }
}
