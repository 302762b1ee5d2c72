//! `resume`: continues a run or a recipe where it stopped.

use std::path::PathBuf;

use clap::Args;

use super::audit::flags::AuditDirectory;
use super::audit::watched::Watched;
use super::flags::{ExecutionFlags, MovedCorpusFlags};
use super::recipe::{Execution, RecipeOutput};
use super::sandboxed::{Paths, SandboxFlag};
use super::{interrupt, run, summary};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::directory::Directory;
use crate::experiment::driver::Driver;
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
            let with =
                Execution { flags: &self.execution, sandbox: self.sandbox, audit, verb: "resume" };
            return self.output.run(&[recipe], with);
        }
        let plan = Plan::load(&Plan::find(&self.directory)?)?;
        let spec = run::again(&plan, &self.execution, self.panel, self.corpus)?;
        let mut paths = Paths::default().run(&spec)?.write(&self.directory)?;
        if let Some(options) = &audit {
            paths = paths.write(&options.directory)?;
        }
        let entered = paths.enter(self.sandbox, &spec.hardware.compute.on.device)?;
        let entered = entered.sealed(self.execution.progress.quiet)?;
        let inputs = spec.read()?;
        let models = spec.describe_models()?;
        let run = spec.resolve(inputs, &models)?;
        let begun = Directory::resume(&self.directory, &run.plan, &run.texts, self.allow_version)?;
        if begun.is_complete && !self.allow_version {
            let path = self.directory.display();
            console::note(format!("{path} is finished: there is nothing to resume"));
            return summary::conclude(&Contents::read(&self.directory)?);
        }
        let (models, observer) = (models.start()?, self.execution.observer());
        let sandbox = entered.report();
        let observer = Watched::begin(audit.as_ref(), "resume", sandbox.as_deref(), observer)?;
        let driver = Driver::new(models, observer.clone(), interrupt::watch());
        summary::finish(&observer.end(driver.execute(run, begun, &self.directory))?)
    }
}
