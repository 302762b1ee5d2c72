//! `replay`: repeats the calls of a run, and reports where the output differs.

use std::path::PathBuf;

use clap::Args;

use super::options::{ExecutionFlags, MovedFlags, hidden};
use super::sandboxed::Paths;
use crate::cli::exit::{Failure, on_interrupt};
use crate::console;
use crate::experiment::contents::Contents;
use crate::experiment::hardware::MOST_DRAFT;
use crate::experiment::plan::Plan;
use crate::experiment::replay::replay;
use crate::experiment::spec::Spec;
use crate::record::count;

// A replay asks no endpoint and computes every call.
#[derive(Debug, Args)]
#[command(mut_args(hidden(["calls", "remote_attempts"])))]
pub struct Replay {
    /// The run directory
    #[arg(value_name = "RUN")]
    directory: PathBuf,
    /// Replay these items only
    #[arg(long, value_delimiter = ',', value_name = "ID,ID")]
    items: Vec<String>,
    #[command(flatten)]
    moved: MovedFlags,
    /// The data file, where it has moved
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    #[command(flatten)]
    execution: ExecutionFlags,
}

impl Replay {
    fn spec(&self, plan: &Plan) -> Result<Spec, Failure> {
        let mut moved = self.moved.clone();
        moved.hardware.refuse_calls("a replay computes every call again")?;
        // Whatever the plan drafted: logged completions are looked at many positions at once.
        moved.hardware.draft.get_or_insert(MOST_DRAFT as usize);
        let mut spec = moved.again(plan, &self.execution)?;
        spec.data = self.data.clone().unwrap_or(spec.data);
        Ok(spec)
    }

    pub fn run(self, given: Paths) -> Result<(), Failure> {
        let spec = self.spec(&Plan::load(&Plan::find(&self.directory)?)?)?;
        given.run(&spec)?.enter()?;
        let contents = Contents::read(&self.directory)?;
        let stop = on_interrupt();
        let replayed = replay(&contents, spec, &self.items, stop)?;
        let mut calls = count(replayed.calls, "call");
        if replayed.searches > 0 {
            calls += &format!(", {} of its searches made again", replayed.searches);
        }
        for difference in &replayed.differences {
            console::say(difference)?;
        }
        let (items, found) = (count(replayed.items, "item"), replayed.differences.len());
        console::say(format!("{items}, {calls} replayed, {}", count(found, "difference")))?;
        match found {
            0 => Ok(()),
            _ => {
                let message = format!("the replay differs from {}", contents.path.display());
                Err(Failure::outcome(message, None))
            }
        }
    }
}
