//! `serve`: serves models and systems through an OpenAI-compatible HTTP API.

pub mod sources;
mod systems;

use std::path::PathBuf;

use clap::Args;

use self::sources::Sources;
use self::systems::SystemFlags;
use super::flags::hidden;
use super::options::HubFlags;
use super::sandboxed::Paths;
use crate::audit::{AuditContent, AuditOptions};
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
    audit: AuditFlags,
    #[command(flatten)]
    hardware: Hardware,
    #[command(flatten)]
    hub: HubFlags,
}

/// The trail that it writes, and what that keeps.
#[derive(Debug, Args)]
#[command(next_help_heading = "Audit")]
struct AuditFlags {
    /// Write an audit trail to this directory: a line per answer and deletion. Each process has a trail of its own
    #[arg(long, value_name = "DIR", env = "WARDROUND_AUDIT")]
    audit: Option<PathBuf>,
    /// What the trail keeps of texts
    #[arg(
        long,
        value_enum,
        default_value = "hash",
        requires = "audit",
        env = "WARDROUND_AUDIT_CONTENT"
    )]
    audit_content: AuditContent,
    /// Delete kept texts after this many days
    #[arg(long, value_name = "DAYS", requires = "audit", value_parser = clap::value_parser!(u32).range(1..), env = "WARDROUND_AUDIT_KEEP")]
    audit_keep: Option<u32>,
}

impl AuditFlags {
    fn options(self) -> Option<AuditOptions> {
        let AuditFlags { audit, audit_content: content, audit_keep: keep_days } = self;
        audit.map(|directory| AuditOptions { directory, content, keep_days })
    }
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
        let audit = self.audit.options();
        let paths = match &audit {
            Some(audit) => {
                audit.make_directory()?;
                paths.write(&audit.directory)?
            }
            None => paths,
        };
        let options = ServeOptions { audit, ..self.options };
        let enter = || {
            paths.enter()?.iter().for_each(console::note);
            Ok(())
        };
        serve(options, enter, move || sources.load())
    }
}
