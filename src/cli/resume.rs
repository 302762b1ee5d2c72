//! `resume`: continues a run or a recipe where it stopped.

use std::path::PathBuf;

use clap::Args;

use super::options::{ExecutionFlags, MovedFlags};
use super::recipe::RecipeOutput;
use super::run::go_on;
use super::sandboxed::Paths;
use crate::cli::exit::Failure;
use crate::experiment::plan::Plan;
use crate::experiment::spec::Spec;
use crate::recipe::manifest::RecipeManifest;
use crate::recipe::run::RecipeRun;

#[derive(Debug, Args)]
pub struct Resume {
    /// The directory that `run` or `recipe` wrote
    directory: PathBuf,
    #[command(flatten)]
    moved: MovedFlags,
    #[command(flatten)]
    execution: ExecutionFlags,
    #[command(flatten)]
    output: RecipeOutput,
}

impl Resume {
    /// The recipe of the directory, if it is one's.
    fn recipe(&self) -> Result<Option<RecipeRun>, Failure> {
        let Some(manifest) = RecipeManifest::read(&self.directory)? else { return Ok(None) };
        Ok(Some(RecipeRun {
            hardware: self.moved.hardware.clone().with_kept(&manifest.machine),
            manifest,
            out: self.directory.clone(),
            hub: self.execution.hub_options()?,
        }))
    }

    fn spec(&self) -> Result<Spec, Failure> {
        let plan = Plan::load(&Plan::find(&self.directory)?)?;
        self.moved.clone().again(&plan, &self.execution)
    }

    pub fn run(self, given: Paths) -> Result<(), Failure> {
        if let Some(recipe) = self.recipe()? {
            self.output.within(given, &recipe)?.write(&recipe.out)?.enter()?;
            return self.output.run(&[recipe], &self.execution);
        }
        let spec = self.spec()?;
        given.run(&spec)?.write(&self.directory)?.enter()?;
        self.execution.progress.loading(std::slice::from_ref(&spec))?;
        let (run, models) = spec.prepare()?;
        go_on(run, models, &self.directory, &self.execution)
    }
}
