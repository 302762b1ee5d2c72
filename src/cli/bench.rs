//! `bench`: measures the speed of a model or a panel on this machine beside the machine's limits.

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
    /// Measure a panel end to end: a system over questions or notes
    Panel(Box<panel::PanelBench>),
}

impl Bench {
    pub fn run(self, given: Paths) -> Result<(), Failure> {
        match self.verb {
            Some(Verb::Panel(panel)) => panel.run(given),
            None => self.model.run(given),
        }
    }
}
