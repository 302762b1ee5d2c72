//! Flags that the verbs which run a panel share, and what they make of a spec.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::options::{HubFlags, MachineFlags, QuietFlag, RowFlags};
use super::progress::Terminal;
use crate::cli::exit::Failure;
use crate::experiment::shard::Shard;
use crate::experiment::spec::Spec;
use crate::hub::HubOptions;
use crate::panel::DecodingMode;

#[derive(Clone, Copy, Debug, Default, Args)]
pub struct DecodingFlags {
    /// How completions are decoded [default: grammar; of recipes their own]
    #[arg(long, value_enum)]
    pub decoding: Option<DecodingMode>,
    /// Short for --decoding text
    #[arg(long, conflicts_with = "decoding")]
    pub free: bool,
}

impl DecodingFlags {
    /// `None` where the flags do not say.
    pub fn mode(self) -> Option<DecodingMode> {
        self.decoding.or(self.free.then_some(DecodingMode::Text))
    }
}

/// Which models answer, and how.
#[derive(Clone, Debug, Default, Args)]
pub struct PanelFlags {
    /// The models in the order of the system's roles, or one for all: cards, hub ids, directories or endpoints
    /// [default: gemma3-4b,llama3.2-3b,qwen3-4b, or their first where the system takes one]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub panel: Vec<String>,
    /// Change a setting of the system, such as t_max=2, or an agent's model, such as slot.sym=qwen3-4b
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Random seed [default: 42]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub decoding: DecodingFlags,
    /// A directory of prompts that override the built-in ones
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
}

/// The models that `slot.AGENT=MODEL` pairs give to agents, and the other pairs.
pub fn slots(pairs: Vec<String>) -> (BTreeMap<String, String>, Vec<String>) {
    let mut slots = BTreeMap::new();
    let mut others = Vec::new();
    for pair in pairs {
        let slot = pair.strip_prefix("slot.");
        match slot.and_then(|slot| slot.split_once('=')) {
            Some((agent, model)) => {
                slots.insert(agent.trim().to_owned(), model.trim().to_owned());
            }
            None => others.push(pair),
        }
    }
    (slots, others)
}

impl PanelFlags {
    /// Says in `spec` what was given, but for the system's settings.
    pub fn apply(self, spec: &mut Spec) {
        (spec.slots, _) = slots(self.set);
        if !self.panel.is_empty() {
            spec.panel = self.panel;
        }
        spec.seed = self.seed.unwrap_or(spec.seed);
        spec.decoding = self.decoding.mode().unwrap_or(spec.decoding);
        spec.prompts = self.prompts;
    }
}

/// Where a run's models lie and what they run on.
#[derive(Clone, Debug, Args)]
pub struct ExecutionFlags {
    #[command(flatten)]
    pub machine: MachineFlags,
    /// Items worked on at once [default: twice --max-batch]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub max_in_flight: Option<u16>,
    #[command(flatten)]
    pub hub: HubFlags,
    #[command(flatten)]
    pub progress: QuietFlag,
}

/// What `run` and `recipe` are asked alike.
#[derive(Clone, Debug, Args)]
pub struct StartFlags {
    /// Run shard I of N of every dataset (item k belongs to shard k mod N); combine the shards with `merge`
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Independent runs over the same items [default: 1; of recipes their own]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..))]
    pub runs: Option<u32>,
    #[command(flatten)]
    pub rows: RowFlags,
    #[command(flatten)]
    pub panel: PanelFlags,
    #[command(flatten)]
    pub execution: ExecutionFlags,
    /// Say what would run, and run nothing
    #[arg(long)]
    pub dry_run: bool,
}

impl ExecutionFlags {
    pub fn hub_options(&self) -> Result<HubOptions, Failure> {
        self.hub.options(self.progress.quiet)
    }

    pub fn max_in_flight(&self) -> Option<usize> {
        self.max_in_flight.map(usize::from)
    }

    /// Says in `spec` what was given.
    pub fn apply(&self, spec: &mut Spec) -> Result<(), Failure> {
        spec.hardware = self.machine.hardware();
        spec.max_in_flight = self.max_in_flight();
        spec.hub = self.hub_options()?;
        Ok(())
    }

    pub fn observer(&self) -> Arc<Terminal> {
        Arc::new(Terminal::new(self.progress.quiet))
    }
}
