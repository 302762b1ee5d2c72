//! `doctor`: shows what this machine and this build can do, for a bug report or before a long run.

mod sandbox;

use std::path::PathBuf;

use clap::Args;

use super::models::state;
use super::options::HubFlags;
use crate::cli::exit::Failure;
use crate::console;
use crate::hub::Card;
use crate::model::available_memory;
use crate::ops::{Cpu, Cuda, Metal};
use crate::panel::memory::gibibytes;

#[derive(Debug, Args)]
pub struct Doctor {
    /// Try each forbidden action inside the sandbox, and print the kernel's answer
    #[arg(long)]
    sandbox: bool,
    #[arg(long, hide = true, value_name = "DIR")]
    sandbox_child: Option<PathBuf>,
    #[command(flatten)]
    hub: HubFlags,
}

impl Doctor {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(folder) = &self.sandbox_child {
            return sandbox::run_child(folder);
        }
        if self.sandbox {
            return sandbox::run_all();
        }
        let options = self.hub.options(true)?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let cpu = Cpu::new(threads)?;
        let fetching = if cfg!(feature = "hub") { "can fetch models" } else { "no HTTP stack" };
        console::say(format!("version    {} ({fetching})", env!("CARGO_PKG_VERSION")))?;
        console::say(format!("device     cpu: {}, {threads} threads", cpu.describe()))?;
        let gpus = [Cuda::describe_all(), Metal::describe_all()].concat();
        for gpu in &gpus {
            console::say(format!("device     {gpu}"))?;
        }
        if gpus.is_empty()
            && let Err(reason) = Cuda::open(0)
        {
            console::say(format!("device     {reason}"))?;
        }
        console::say(format!("memory     {} free", gibibytes(available_memory())))?;
        let connections = match options.fetch_refusal() {
            Some(reason) => format!("none: {reason}"),
            None => format!("to {} when a model is missing", options.environment.endpoint),
        };
        console::say(format!("network    {connections}"))?;
        console::say(format!("cache      {}", options.cache()?.root().display()))?;
        let here = options.local();
        for card in Card::all() {
            console::say(format!("model      {}: {}", card.name, state(card, &here)))?;
        }
        Ok(())
    }
}
