//! `replay`: generate a run's calls again, and say where they differ.

use std::path::PathBuf;

use clap::Args;

use super::flags::{ExecutionFlags, MovedCorpusFlags};
use super::summary::count;
use super::{interrupt, run};
use crate::cli::exit::Failure;
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::replay::{Asked, replay};

#[derive(Debug, Args)]
pub struct Replay {
    /// The run directory
    directory: PathBuf,
    /// Replay these items only
    #[arg(long, value_delimiter = ',', value_name = "ID,ID")]
    items: Vec<String>,
    /// The models, where they lie elsewhere now
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    panel: Vec<String>,
    /// The questions, where they lie elsewhere now
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Replay the run of another version of wardround
    #[arg(long)]
    allow_version: bool,
    #[command(flatten)]
    corpus: MovedCorpusFlags,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl Replay {
    pub fn run(self) -> Result<(), Failure> {
        let contents = Contents::read(&self.directory)?;
        let mut spec = run::again(&contents.plan, &self.execution, self.panel, self.corpus)?;
        if let Some(data) = self.data {
            spec.data = data;
        }
        let asked = Asked { items: &self.items, allow_version: self.allow_version };
        let replayed = replay(&contents, spec, &asked, interrupt::watch())?;
        for line in &replayed.differences {
            console::say(line)?;
        }
        let mut calls = count(replayed.calls, "call");
        if replayed.searches > 0 {
            calls += &format!(", {} of its searches made again", replayed.searches);
        }
        console::say(format!(
            "{}, {} replayed, {}",
            count(replayed.items, "item"),
            calls,
            count(replayed.differences.len(), "difference")
        ))?;
        match replayed.differences.is_empty() {
            true => Ok(()),
            false => Err(Failure::outcome(
                format!("the replay differs from {}", self.directory.display()),
                None,
            )),
        }
    }
}
