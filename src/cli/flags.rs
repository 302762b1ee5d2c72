//! The flags shared by the commands that run a panel, and how they fill in a spec.

mod retrieval;

pub use retrieval::{corpus, refuse_idle_reranker, reranker};

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::audit::RunTrail;
use super::options::{HubFlags, PromptFlags, QuietFlag};
use super::progress::Terminal;
use crate::cli::exit::Failure;
use crate::data::Format;
use crate::experiment::exemplars::ExemplarSpec;
use crate::experiment::hardware::Hardware;
use crate::experiment::plan::Plan;
use crate::experiment::spec::Shard;
use crate::experiment::spec::{MEMBER, MOST_RUNS, Spec};
use crate::hub::HubOptions;
use crate::panel::{DecodingMode, SamplingChoice};
use crate::retrieval::CorpusSpec;
use crate::systems::SystemConfig;
use crate::systems::table::SystemEntry;

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
    /// `None` if neither flag is given.
    pub fn mode(self) -> Option<DecodingMode> {
        self.decoding.or(self.free.then_some(DecodingMode::Text))
    }
}

/// The models of a panel and how they are sampled.
#[derive(Clone, Debug, Default, Args)]
pub struct PanelFlags {
    /// Models by the system's roles, or one for all: cards, hub ids, directories, endpoints [default: gemma3-4b,llama3.2-3b,qwen3-4b, or the first]
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub panel: Vec<String>,
    /// Change a setting (t_max=2), an agent's model (slot.sym=qwen3-4b) or sampling (slot.sym.temperature=0.2), or that of all with the
    /// panel's first model (panel.1.temperature=0.2)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Random seed [default: 42]
    #[arg(long, value_name = "S")]
    pub seed: Option<u64>,
    #[command(flatten)]
    pub decoding: DecodingFlags,
    #[command(flatten)]
    pub sampling: SamplingChoice,
    #[command(flatten)]
    pub prompts: PromptFlags,
}

/// The arguments of `--set`, by kind.
#[derive(Debug, Default)]
pub struct SetPairs {
    /// `slot.AGENT=MODEL`
    pub models: BTreeMap<String, String>,
    /// `slot.AGENT.PARAMETER=VALUE`
    pub sampling: BTreeMap<String, SamplingChoice>,
    /// The system's settings, unparsed.
    pub settings: Vec<String>,
}

impl SetPairs {
    pub fn of(pairs: &[String]) -> Result<SetPairs, Failure> {
        let mut set = SetPairs::default();
        let mut keys = BTreeSet::new();
        for pair in pairs {
            let Some((key, value)) = pair.split_once('=') else {
                set.settings.push(pair.clone());
                continue;
            };
            let (key, value) = (key.trim(), value.trim());
            if !keys.insert(key) {
                return Err(Failure::usage(format!("--set {key} is given twice"), "give it once"));
            }
            let slot = key.strip_prefix("slot.");
            if let Some(agent) = slot.filter(|slot| !slot.contains('.')) {
                set.models.insert(agent.to_owned(), value.to_owned());
                continue;
            }
            let Some(sampled) = slot.or(key.starts_with(MEMBER).then_some(key)) else {
                set.settings.push(pair.clone());
                continue;
            };
            let (name, parameter) = sampled.rsplit_once('.').unwrap_or((sampled, ""));
            let sampling = set.sampling.entry(name.to_owned()).or_default();
            sampling.set(parameter, value).map_err(|expected| {
                Failure::usage(
                    format!("--set {pair}: {expected}"),
                    "write an agent's sampling as --set slot.AGENT.temperature=0.2, a member's as --set panel.1.temperature=0.2",
                )
            })?;
        }
        Ok(set)
    }
}

impl PanelFlags {
    /// The spec of a system on the items of a file.
    pub fn spec(
        self,
        system: &'static SystemEntry,
        data: impl Into<PathBuf>,
        format: Format,
    ) -> Result<Spec, Failure> {
        let set = SetPairs::of(&self.set)?;
        let config = SystemConfig::of(system, &set.settings)?;
        let mut spec = Spec::new(config, data, format)?;
        (spec.slots, spec.slot_sampling) = (set.models, set.sampling);
        if !self.panel.is_empty() {
            spec.panel = self.panel;
        }
        spec.sampling = self.sampling;
        spec.seed = self.seed.unwrap_or(spec.seed);
        spec.decoding = self.decoding.mode().unwrap_or(spec.decoding);
        spec.prompts = self.prompts.prompts;
        Ok(spec)
    }
}

/// Lets a system cite its sources, where it can and `given` does not say otherwise: the reader of a single note wants to see them.
pub fn cited(system: &'static SystemEntry, given: &mut Vec<String>) -> Result<(), Failure> {
    let has = SystemConfig::with(system, &toml::Table::new())?.table.contains_key("cite");
    let is_it = |pair: &String| pair.split('=').next().map(str::trim) == Some("cite");
    if has && !given.iter().any(is_it) {
        given.push("cite=on".to_owned());
    }
    Ok(())
}

/// New places of a plan's models and corpora.
#[derive(Clone, Debug, Default, Args)]
pub struct MovedFlags {
    /// The models, where they have moved
    #[arg(long, value_delimiter = ',', value_name = "A,B,C")]
    pub panel: Vec<String>,
    /// The corpora, where they have moved
    #[arg(long, help_heading = "Retrieval", value_delimiter = ',', value_name = "DIR,DIR")]
    pub corpus: Vec<PathBuf>,
    /// The reranker, where it has moved
    #[arg(long, help_heading = "Retrieval", value_name = "DIR")]
    pub reranker: Option<PathBuf>,
    /// Device that encodes queries and reranks passages [default: the plan's]
    #[arg(long, help_heading = "Retrieval", value_name = "DEVICE")]
    pub retrieval_device: Option<String>,
}

impl MovedFlags {
    /// The spec that repeats `plan`, on models and corpora that may have moved.
    pub fn again(self, plan: &Plan, execution: &ExecutionFlags) -> Result<Spec, Failure> {
        let mut spec = plan.again(execution.hardware.clone(), execution.hub_options()?)?;
        spec.max_in_flight = execution.max_in_flight();
        if !self.panel.is_empty() {
            spec.panel = self.panel;
            spec.slots.clear();
        }
        if let Some(spec) = &mut spec.corpus {
            if !self.corpus.is_empty() {
                spec.directories = self.corpus;
            }
            spec.reranker = self.reranker.or(spec.reranker.take());
            spec.device = self.retrieval_device.or(spec.device.take());
        }
        Ok(spec)
    }
}

/// The machine that a run uses, and the hub that its models come from.
#[derive(Clone, Debug, Args)]
pub struct ExecutionFlags {
    #[command(flatten)]
    pub hardware: Hardware,
    /// Items worked on at once [default: twice --max-batch; for systems that search, as many as the KV cache holds]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=4096))]
    pub max_in_flight: Option<u16>,
    #[command(flatten)]
    pub hub: HubFlags,
    #[command(flatten)]
    pub progress: QuietFlag,
}

/// The flags shared by `run` and `recipe`.
#[derive(Clone, Debug, Args)]
pub struct StartFlags {
    /// Only every Nth item from the Ith on, counted from 1
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// Runs over the same items [default: 1; of recipes their own]
    #[arg(long, value_name = "R", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_RUNS)))]
    pub runs: Option<u32>,
    #[command(flatten)]
    pub panel: PanelFlags,
    #[command(flatten)]
    pub corpus: CorpusSpec,
    #[command(flatten)]
    pub exemplars: ExemplarSpec,
    #[command(flatten)]
    pub execution: ExecutionFlags,
    /// Show what would run, and run nothing
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

    /// Fills in `spec`.
    pub fn apply(&self, spec: &mut Spec) -> Result<(), Failure> {
        spec.hardware = self.hardware.clone();
        spec.max_in_flight = self.max_in_flight();
        spec.hub = self.hub_options()?;
        Ok(())
    }

    pub fn observer(&self, trail: Option<&RunTrail>) -> Arc<Terminal> {
        Arc::new(Terminal::new(self.progress.quiet, trail.cloned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_of_the_panel_samples_as_it_is_told_and_an_agent_before_it() {
        let pairs = [
            "panel.1.temperature=0.2",
            "panel.1.top_p=0.9",
            "slot.loc1.temperature=0.7",
            "slot.corr1=another",
            "panel.3.temperature=0.4",
            "agents=7",
        ];
        let set = SetPairs::of(&pairs.map(str::to_owned)).unwrap();
        assert_eq!(set.settings, ["agents=7"]);
        let config = SystemConfig::parse("medguards", &set.settings).unwrap();
        let mut spec = Spec::new(config, "notes.jsonl", Format::Notes).unwrap();
        spec.panel = ["a", "b", "c"].map(str::to_owned).to_vec();
        (spec.slots, spec.slot_sampling) = (set.models, set.sampling);
        let sampled = |agent: &str| {
            let slots = spec.config.slots();
            let sampling = spec.sampling_of(slots.iter().find(|slot| slot.agent == agent).unwrap());
            (sampling.temperature, sampling.top_p)
        };
        assert_eq!(sampled("det1"), (Some(0.2), Some(0.9)));
        assert_eq!(sampled("loc1"), (Some(0.7), Some(0.9)));
        assert_eq!(sampled("det2"), (None, None));
        assert_eq!(sampled("det3"), (Some(0.4), None));
        // It has a model of its own.
        assert_eq!(sampled("corr1"), (None, None));
        assert!(spec.slot_models().is_ok());
        spec.slot_sampling.insert("panel.4".to_owned(), SamplingChoice::default());
        assert!(spec.slot_models().is_err());
        assert!(SetPairs::of(&["panel.1.heat=2".to_owned()]).is_err());
        assert!(SetPairs::of(&["panel.1=x".to_owned()]).is_err());
        for twice in ["agents=7", "slot.loc1=x", "slot.loc1.seed=3", "panel.1.top_p=0.5"] {
            let pairs = [twice.to_owned(), "t=1".to_owned(), format!(" {twice}")];
            assert!(SetPairs::of(&pairs).is_err(), "{twice}");
        }
    }

    #[test]
    fn one_model_is_the_first_member_of_the_panel_in_every_seat() {
        let config = SystemConfig::named("medmad").unwrap();
        let mut spec = Spec::new(config, "x.jsonl", Format::Mcq).unwrap();
        spec.slot_sampling =
            SetPairs::of(&["panel.1.temperature=0.2".to_owned()]).unwrap().sampling;
        for (panel, cool) in [(vec!["a"], 3), (vec!["a", "b", "c"], 1)] {
            spec.panel = panel.into_iter().map(str::to_owned).collect();
            let slots = spec.config.slots();
            let sampled = slots.iter().map(|slot| spec.sampling_of(slot).temperature);
            assert_eq!(sampled.filter(|one| *one == Some(0.2)).count(), cool);
            assert!(spec.slot_models().is_ok());
        }
        spec.panel = vec!["a".to_owned()];
        spec.slot_sampling.insert("panel.2".to_owned(), SamplingChoice::default());
        let error = spec.slot_models().unwrap_err().to_string();
        assert_eq!(error, "there is no panel.2: the panel's last model is panel.1");
    }
}
