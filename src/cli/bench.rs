//! `bench`: measures the speed of a model, an encoder or a panel on this machine beside the machine's limits.

mod embed;
mod model;
mod panel;

use clap::{Args, Subcommand};

use crate::cli::exit::Failure;
use crate::cli::sandboxed::Paths;

#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct Bench {
    #[command(subcommand)]
    verb: Option<Verb>,
    #[command(flatten)]
    model: model::ModelBench,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure an encoder of BERT-base's sizes: texts per second
    Embed(Box<embed::EmbedBench>),
    /// Measure a panel end to end: a system over questions or notes
    Panel(Box<panel::PanelBench>),
}

impl Bench {
    pub fn within(&self, given: Paths) -> Result<Paths, Failure> {
        match &self.verb {
            Some(Verb::Panel(panel)) => panel.within(given),
            None if self.model.synth.is_some() => given.write(&self.model.models.root()),
            _ => Ok(given),
        }
    }

    pub fn run(self) -> Result<(), Failure> {
        match self.verb {
            Some(Verb::Embed(embed)) => embed.run(),
            Some(Verb::Panel(panel)) => panel.run(),
            None => self.model.run(),
        }
    }
}
