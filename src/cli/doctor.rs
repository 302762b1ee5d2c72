//! `doctor`: shows what this machine and this build can do, for a bug report or before a long run.

mod disk;
mod sandbox;
#[cfg(feature = "cuda-emulated")]
mod shadow;

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
    /// Show which disk an audit trail, or any other directory, is on, and whether it is encrypted
    #[arg(long, value_name = "DIR")]
    audit: Option<PathBuf>,
    #[arg(long, hide = true, value_name = "DIR")]
    sandbox_child: Option<PathBuf>,
    #[command(flatten)]
    shadow: ShadowFlags,
    #[command(flatten)]
    hub: HubFlags,
}

/// The comparison of the GPU with the emulator.
#[derive(Debug, Args)]
struct ShadowFlags {
    /// Run every CUDA kernel on the GPU and on the emulator, and show where bytes differ
    #[arg(long)]
    shadow: bool,
    /// How long the kernels of a family may take
    #[arg(long, value_name = "N", default_value_t = 300, requires = "shadow")]
    shadow_seconds: u64,
    #[arg(long, hide = true, value_name = "FAMILY")]
    shadow_child: Option<String>,
}

impl ShadowFlags {
    fn is_asked(&self) -> bool {
        self.shadow || self.shadow_child.is_some()
    }

    #[cfg(feature = "cuda-emulated")]
    fn run(&self) -> Result<(), Failure> {
        match &self.shadow_child {
            Some(family) => shadow::run_child(family),
            None => shadow::run_all(std::time::Duration::from_secs(self.shadow_seconds)),
        }
    }

    #[cfg(not(feature = "cuda-emulated"))]
    fn run(&self) -> Result<(), Failure> {
        let hint = "build with --features cuda,cuda-emulated";
        Err(Failure::usage("this build has no emulator to compare a GPU with", hint))
    }
}

impl Doctor {
    pub fn run(self) -> Result<(), Failure> {
        if let Some(folder) = &self.sandbox_child {
            return sandbox::run_child(folder);
        }
        if self.sandbox {
            return sandbox::run_all();
        }
        if self.shadow.is_asked() {
            return self.shadow.run();
        }
        if let Some(directory) = &self.audit {
            return disk::print(directory);
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
