//! `bench`: measures the speed of a model or a panel on this machine beside the machine's limits, and what rounding costs.

mod embed;
mod model;
mod panel;
mod quality;
#[cfg(all(feature = "serve", feature = "remote"))]
mod serve;

use clap::{Args, Subcommand};

use crate::cli::exit::Failure;

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
    /// Measure a panel end to end: MED-MAD over questions
    Panel(Box<panel::PanelBench>),
    /// Measure what rounding does to a model's predictions: each format beside f32
    Quality(quality::QualityBench),
    /// Measure a server under load, beside the same engine in process
    #[cfg(all(feature = "serve", feature = "remote"))]
    Serve(serve::ServeBench),
}

impl Bench {
    pub fn run(self) -> Result<(), Failure> {
        match self.verb {
            Some(Verb::Embed(embed)) => embed.run(),
            Some(Verb::Panel(panel)) => panel.run(),
            Some(Verb::Quality(quality)) => quality.run(),
            #[cfg(all(feature = "serve", feature = "remote"))]
            Some(Verb::Serve(serve)) => serve.run(),
            None => self.model.run(),
        }
    }
}
