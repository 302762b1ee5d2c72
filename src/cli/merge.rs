//! `merge`: the shards of a run, or of a recipe, become the whole.

use std::path::PathBuf;

use clap::Args;

use super::options::ScorerFlags;
use super::summary::{self, count};
use super::{report, workplace};
use crate::analysis::recipe::results::RecipeResults;
use crate::cli::exit::{Failure, resume};
use crate::console;
use crate::encoder::Encoder;
use crate::experiment::contents::Contents;
use crate::experiment::merge::merge;
use crate::experiment::recipe::begun::Begun;
use crate::experiment::recipe::shards;
use crate::report::recipe::tables::markdown;

#[derive(Debug, Args)]
pub struct Merge {
    /// The new directory
    out: PathBuf,
    /// The directories that `run --shard` wrote, every one of them, in any order
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<PathBuf>,
    /// The folder of all-MiniLM-L6-v2, by which recipes measure how alike texts are
    #[arg(long, env = "WARDROUND_ENCODER", value_name = "DIR")]
    encoder: Option<PathBuf>,
    #[command(flatten)]
    scorers: ScorerFlags,
}

impl Merge {
    pub fn run(self) -> Result<(), Failure> {
        for folder in &self.shards {
            if Begun::read(folder)?.is_some() {
                return self.merge_recipe();
            }
        }
        let results = merge(&self.shards, &self.out)?;
        let contents = Contents::read(&self.out)?;
        report::write(&contents, &self.out)?;
        summary::tell(&results, &contents.plan, &self.out)?;
        workplace::refuse_errors(&contents, &self.out)
    }

    fn merge_recipe(self) -> Result<(), Failure> {
        let encoder = self.encoder.as_deref().map(Encoder::open).transpose()?;
        let begun = shards::whole(&self.shards)?;
        let finished = shards::merge_cells(&begun, &self.shards, &self.out)?;
        for (_, contents) in &finished {
            report::write(contents, &contents.path)?;
        }
        let recipe = &begun.recipe;
        let scorer = self
            .scorers
            .correction_scorer(finished.iter().map(|(_, run)| run))?;
        let results = RecipeResults::of(&begun.name, recipe, &finished, encoder.as_ref(), &scorer)?;
        results.write(&self.out)?;
        report::write_recipe(recipe, &results, &finished, &self.out)?;
        console::say(markdown(recipe, &results).trim_end())?;
        let errors: usize = results.cells.iter().map(|cell| cell.n_errors).sum();
        match errors {
            0 => Ok(()),
            errors => Err(Failure::outcome(
                format!("{} errored", count(errors, "item")),
                Some(format!("{} with them", resume(&self.out))),
            )),
        }
    }
}
