//! `resume`: continues a run or a recipe where it stopped.

use std::path::PathBuf;

use clap::Args;

use super::audit::AuditDirectory;
use super::flags::{ExecutionFlags, MovedCorpusFlags};
use super::recipe::{Execution, RecipeOutput};
use super::run::{again, go_on};
use super::sandboxed::{Paths, SandboxFlag};
use crate::cli::exit::Failure;
use crate::experiment::plan::Plan;
use crate::experiment::recipe::manifest::RecipeManifest;
use crate::experiment::recipe::run::RecipeRun;
use crate::experiment::recipe::variant::Form;

#[derive(Debug, Args)]
pub struct Resume {
    /// The directory that `run` or `recipe` wrote
    directory: PathBuf,
    /// The models, where they have moved
    #[arg(long, value_name = "A,B,C")]
    panel: Vec<String>,
    #[command(flatten)]
    corpus: MovedCorpusFlags,
    #[command(flatten)]
    audit: AuditDirectory,
    #[command(flatten)]
    sandbox: SandboxFlag,
    #[command(flatten)]
    execution: ExecutionFlags,
    #[command(flatten)]
    output: RecipeOutput,
    /// Continue what another version of wardround began; versions.json then lists both
    #[arg(long)]
    allow_version: bool,
}

impl Resume {
    pub fn run(self) -> Result<(), Failure> {
        let audit = self.audit.options();
        let with =
            Execution { flags: &self.execution, sandbox: self.sandbox, audit, verb: "resume" };
        if let Some(manifest) = RecipeManifest::read(&self.directory)? {
            let hardware = manifest.machine.under(self.execution.hardware.clone())?;
            let recipe = RecipeRun {
                forms: Form::all(manifest)?,
                out: self.directory,
                hardware,
                max_in_flight: self.execution.max_in_flight(),
                hub: self.execution.hub_options()?,
                allow_version: self.allow_version,
            };
            return self.output.run(&[recipe], with);
        }
        let plan = Plan::load(&Plan::find(&self.directory)?)?;
        let spec = again(&plan, &self.execution, self.panel, self.corpus)?;
        let mut paths = Paths::default().run(&spec)?.write(&self.directory)?;
        if let Some(options) = &with.audit {
            paths = paths.write(&options.directory)?;
        }
        let (device, is_quiet) = (&spec.hardware.compute.on.device, self.execution.progress.quiet);
        let sandbox = paths.enter(self.sandbox, device, is_quiet)?;
        let inputs = spec.read()?;
        let models = spec.describe_models()?;
        let mut run = spec.resolve(inputs, &models)?;
        run.plan.host.sandbox = sandbox;
        go_on(run, models, &self.directory, with, self.allow_version)
    }
}
