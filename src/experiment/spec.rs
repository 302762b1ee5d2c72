//! What a run is asked to be: plain data, from flags, a recipe or a plan, which keeps it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::{Args, ValueEnum};
use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::exemplars::ExemplarSpec;
use super::hardware::Hardware;
use super::library::Shared;
use super::models::Models;
use super::run::absolute;
use crate::data::subset::Subset;
use crate::data::{Format, ItemKind};
use crate::diagnosis::Failure;
use crate::hub::HubOptions;
use crate::panel::{DecodingMode, SamplingChoice};
use crate::retrieval::{CorpusSpec, Rerank};
use crate::systems::table::SystemEntry;
use crate::systems::{Slot, SystemConfig};

mod set;

pub use set::Set;

pub const DEFAULT_PANEL: [&str; 3] = ["gemma3-4b", "llama3.2-3b", "qwen3-4b"];
pub const DEFAULT_SEED: u64 = 42;
/// Runs over the same items that a command, a recipe or a plan may ask for.
pub const MOST_RUNS: u32 = 10_000;
/// Tokens of a prompt and its completion together, for systems that quote passages.
const SEARCH_CONTEXT: usize = 32_768;

/// What a run is asked to be. The verbs that run a panel have it as flags, a recipe makes one for each cell, and a plan keeps it, but for
/// the fields marked `serde(skip)`: the plan says those by its items, slots and settings, or each machine for itself.
#[derive(Clone, Debug, Default, Args, Serialize, Deserialize)]
pub struct Spec {
    /// Each verb names its system, its file and what runs of it in its own words: see [`Spec::of`].
    #[arg(skip)]
    pub config: SystemConfig,
    #[arg(skip)]
    pub data: PathBuf,
    #[arg(skip)]
    pub format: Format,
    #[arg(skip)]
    #[serde(skip)]
    pub subset: Subset,
    /// The part of the subset that runs; `None`: all of it.
    #[arg(skip)]
    #[serde(skip)]
    pub shard: Option<Shard>,
    #[arg(skip = 1_u32)]
    pub runs: u32,
    /// Models by the system's roles, or one for all: cards, hub ids, directories, endpoints [default: gemma3-4b,llama3.2-3b,qwen3-4b, or the first]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    #[serde(skip)]
    pub panel: Vec<String>,
    /// Change a setting (t_max=2), an agent's model (slot.sym=qwen3-4b) or sampling (slot.sym.temperature=0.2)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    #[serde(skip)]
    pub set: Vec<String>,
    /// Slots that have a model of their own, by agent.
    #[arg(skip)]
    pub slots: BTreeMap<String, String>,
    /// How every slot samples, over its model's defaults.
    #[command(flatten)]
    #[serde(default)]
    pub sampling: SamplingChoice,
    /// Slots that sample in a way of their own, by agent.
    #[arg(skip)]
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub slot_sampling: BTreeMap<String, SamplingChoice>,
    /// Random seed
    #[arg(long, value_name = "S", default_value_t = DEFAULT_SEED)]
    pub seed: u64,
    /// How completions are decoded [default: grammar; of recipes their own]
    #[arg(long, value_enum)]
    pub decoding: Option<DecodingMode>,
    /// A directory of prompts that override the built-in ones
    #[arg(long, value_name = "DIR")]
    pub prompts: Option<PathBuf>,
    /// What the system searches, where it searches.
    #[command(flatten)]
    pub corpus: Option<CorpusSpec>,
    /// What the system shows as exemplars, where it shows any.
    #[command(flatten)]
    #[serde(default, skip_serializing_if = "ExemplarSpec::is_none")]
    pub exemplars: ExemplarSpec,
    #[command(flatten)]
    pub hardware: Hardware,
    #[arg(skip)]
    #[serde(skip)]
    pub hub: HubOptions,
}

fn default_panel(config: &SystemConfig) -> Vec<String> {
    let models = config.default_models().min(DEFAULT_PANEL.len());
    DEFAULT_PANEL[..models].iter().map(ToString::to_string).collect()
}

/// The formats of files that hold these items.
pub fn formats(kind: ItemKind) -> String {
    let formats = Format::value_variants().iter().filter(|format| format.kind() == kind);
    formats.map(|format| format.name()).join(", ")
}

impl Spec {
    /// A system on every item of a file, with defaults for all else.
    pub fn new(
        config: SystemConfig,
        data: impl Into<PathBuf>,
        format: Format,
    ) -> Result<Spec, Failure> {
        Ok(Spec {
            data: data.into(),
            format,
            runs: 1,
            panel: default_panel(&config),
            config,
            seed: DEFAULT_SEED,
            hub: HubOptions::capture()?,
            ..Spec::default()
        })
    }

    /// What the flags ask of a system on a file, with whole paths.
    ///
    /// # Errors
    /// What is set and the system has not, or not so; a reranker where nothing is reranked by one.
    pub fn of(
        mut self,
        system: &'static SystemEntry,
        data: impl Into<PathBuf>,
        format: Format,
    ) -> Result<Spec, Failure> {
        let set = Set::of(&self.set)?;
        self.config = SystemConfig::with(system, &set.settings)?;
        (self.slots, self.slot_sampling) = (set.models, set.sampling);
        (self.data, self.format) = (data.into(), format);
        if self.panel.is_empty() {
            self.panel = default_panel(&self.config);
        }
        self.corpus = self.corpus.map(CorpusSpec::whole).transpose()?;
        self.exemplars = self.exemplars.whole(None)?;
        let is_given = self.corpus.as_ref().is_some_and(|corpus| corpus.reranker.is_some());
        let reranks = self.config.search() == Some(Rerank::CrossEncoder);
        match is_given && !reranks {
            false => Ok(self),
            true => Err(Failure::usage(
                format!("{} reranks by no cross-encoder here", system.name),
                "leave --reranker out, or give --set rerank=cross-encoder to a system that has it",
            )),
        }
    }

    pub fn decoding(&self) -> DecodingMode {
        self.decoding.unwrap_or_default()
    }

    /// The same as a plan keeps it: with whole paths, and every seat's own model and sampling, of which `models` has the models.
    pub fn whole(&self, models: &Models) -> Result<Spec, Failure> {
        let (mut slots, mut slot_sampling) = (BTreeMap::new(), BTreeMap::new());
        for (slot, name) in self.config.slots().iter().zip(self.slot_models()?) {
            slots.extend(models.index(name).map(|index| (slot.agent.clone(), models.place(index))));
            let own = Some(self.sampling_of(slot)).filter(|own| *own != self.sampling);
            slot_sampling.extend(own.map(|own| (slot.agent.clone(), own)));
        }
        let prompts = self.prompts.as_deref().map(absolute).transpose()?;
        Ok(Spec {
            data: absolute(&self.data)?.into(),
            prompts: prompts.map(PathBuf::from),
            panel: Vec::new(),
            slots,
            slot_sampling,
            decoding: Some(self.decoding()),
            ..self.clone()
        })
    }

    /// The models of the spec's slots, described.
    pub fn describe_models(&self, shared: &mut Shared) -> Result<Models, Failure> {
        let hardware = self.roomy_hardware();
        Models::describe(self.slot_models()?, &hardware, &self.hub, |devices| {
            shared.open(std::slice::from_ref(self), devices)
        })
    }

    /// The hardware with the context that the system asks for where none was given.
    pub fn roomy_hardware(&self) -> Hardware {
        let own = self.config.search().map(|_| SEARCH_CONTEXT);
        Hardware { context: self.hardware.context.or(own), ..self.hardware.clone() }
    }

    /// A system works on questions or on notes, and a format holds one of them.
    pub fn refuse_other_items(&self) -> Result<(), Failure> {
        let (system, wanted) = (self.config.entry.name, self.config.entry.takes);
        let found = self.format.kind();
        if wanted == found {
            return Ok(());
        }
        let message = format!("{system} takes {wanted}, and {} holds {found}", self.format);
        let hint = format!(
            "the formats of {wanted} are {}; `wardround systems ls` has the systems of {found}",
            formats(wanted)
        );
        Err(Failure::usage(message, &hint))
    }

    /// How an agent samples: by what is set for it, else for all.
    pub fn sampling_of(&self, slot: &Slot) -> SamplingChoice {
        let own = self.slot_sampling.get(&slot.agent).copied().unwrap_or_default();
        own.or(self.sampling)
    }

    /// The model of every slot.
    pub fn slot_models(&self) -> Result<Vec<&String>, Failure> {
        let (slots, models) = (self.config.slots(), self.config.models());
        let mut named = self.slots.keys().chain(self.slot_sampling.keys());
        if let Some(name) = named.find(|name| slots.iter().all(|slot| slot.agent != **name)) {
            let agents = slots.iter().map(|slot| &slot.agent).join(", ");
            let message = format!("{} has no slot {name}", self.config.entry.name);
            return Err(Failure::usage(message, &format!("its slots are {agents}")));
        }
        if self.panel.len() > 1 && self.panel.len() != models {
            let (given, name) = (self.panel.len(), self.config.entry.name);
            let hint = match models {
                1 => "give it one model".to_owned(),
                models => format!("give it {models} models, or one for all"),
            };
            let message = format!("a panel of {given} models, and {name} takes {models}");
            return Err(Failure::usage(message, &hint));
        }
        let model = |slot: &Slot| {
            // One model has every seat.
            let shared = self.panel.get(if self.panel.len() == 1 { 0 } else { slot.model });
            self.slots.get(&slot.agent).or(shared).ok_or_else(|| {
                let message = format!("no model was given for {}", slot.agent);
                Failure::usage(message, "give --panel, or --set slot.AGENT=MODEL")
            })
        };
        slots.iter().map(model).collect()
    }
}

/// Written `2/4`: of every four items, from the first on, the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Shard {
    /// Counted from 1.
    number: usize,
    of: usize,
}

impl Shard {
    /// How many of so many items are its own, at most.
    pub fn share(self, items: usize) -> usize {
        items.div_ceil(self.of)
    }

    /// The items of this shard: every `of`-th, beginning with the shard's number.
    pub fn take<T>(self, all: Vec<T>) -> Vec<T> {
        all.into_iter().skip(self.number - 1).step_by(self.of).collect()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Shard, String> {
        let pair = text.split_once('/');
        let pair = pair.and_then(|(number, of)| Some((number.parse().ok()?, of.parse().ok()?)));
        match pair {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Shard { number, of }),
            _ => Err("not a shard, such as 2/4: the second of four, counted from 1".to_owned()),
        }
    }
}

impl TryFrom<String> for Shard {
    type Error = String;

    fn try_from(text: String) -> Result<Shard, String> {
        text.parse()
    }
}

impl From<Shard> for String {
    fn from(shard: Shard) -> String {
        shard.to_string()
    }
}

#[cfg(test)]
mod tests;
