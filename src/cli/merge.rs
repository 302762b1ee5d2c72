//! `merge`: combines the shards of a run or of a recipe.

use std::path::PathBuf;

use clap::Args;

use super::recipe::RecipeOutput;
use super::summary;
use crate::cli::exit::Failure;
use crate::corpus::open_encoder;
use crate::experiment::merge::merge;
use crate::experiment::recipe::manifest::RecipeManifest;
use crate::experiment::recipe::shards;
use crate::experiment::recipe::variant::Form;

#[derive(Debug, Args)]
pub struct Merge {
    /// The new directory
    out: PathBuf,
    /// The directories that `run --shard` wrote, every one of them, in any order
    #[arg(required = true, value_name = "SHARD")]
    shards: Vec<PathBuf>,
    #[command(flatten)]
    output: RecipeOutput,
}

impl Merge {
    pub fn run(self) -> Result<(), Failure> {
        for folder in &self.shards {
            if RecipeManifest::read(folder)?.is_some() {
                return self.merge_recipe();
            }
        }
        summary::finish(&merge(&self.shards, &self.out)?)
    }

    fn merge_recipe(self) -> Result<(), Failure> {
        let encoder = self.output.encoder.as_deref().map(open_encoder).transpose()?;
        let forms = Form::all(shards::whole(&self.shards)?)?;
        let keywords = self.output.keywords(&forms[0].manifest)?;
        let merged = shards::merge_cells(&forms, &self.shards, &self.out)?.into_iter();
        let written = merged.map(|(cell, executed)| {
            summary::write(&executed)?;
            Ok((cell, executed.contents))
        });
        let cells = written.collect::<Result<_, Failure>>()?;
        self.output.write(&forms, cells, encoder.as_ref(), keywords, &self.out)
    }
}
