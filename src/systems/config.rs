//! A system by name with every setting resolved, as plans have it; known before any prompt is read.

use std::ops::Deref;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::decoding::{CallSeed, Decoding};
use super::exemplars::Exemplars;
use super::file::SystemText;
use super::settings::{pairs, replace};
use super::table::{SYSTEMS, SystemEntry};
use super::{System, Which, medmad};
use crate::diagnosis::Failure;
use crate::digest::sha256;
use crate::panel::{CallSettings, DecodingMode};
use crate::prompts::{PromptError, PromptSet};
use crate::retrieval::Rerank;

/// The agent of a system with one.
pub const SOLO: &str = "solo";

/// The settings of one system, read and written by serde; a plan lists every one.
pub trait Settings: Send + Sync {
    /// The agents, in panel order; by default the only one of a system with one agent.
    fn slots(&self) -> Vec<Slot> {
        vec![Slot::new(SOLO, 0)]
    }

    /// Calls on an item, at most.
    fn max_calls(&self) -> u32;

    /// How what the system finds in a corpus is reranked; `None` where it searches none.
    fn search(&self) -> Option<Rerank> {
        None
    }

    fn build(&self, given: &Given<'_>) -> Built;
}

/// What a system is made of besides its settings.
pub struct Given<'a> {
    pub prompts: &'a PromptSet,
    pub exemplars: &'a Arc<Exemplars>,
}

pub type Built = Result<Box<dyn System>, Failure>;

/// An agent of a system, and the index of its default model among the panel's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slot {
    pub agent: String,
    pub model: usize,
}

impl Slot {
    pub fn new(agent: impl Into<String>, model: usize) -> Slot {
        let agent = agent.into();
        Slot { agent, model }
    }

    /// Agents with one model each, in order, then others with the first model.
    pub fn in_order(agents: impl IntoIterator<Item = String>, others: &[&str]) -> Vec<Slot> {
        let agents = agents.into_iter().enumerate();
        let agents = agents.map(|(model, agent)| Slot::new(agent, model));
        let others = others.iter().map(|agent| Slot::new(*agent, 0));
        agents.chain(others).collect()
    }
}

/// A system with its settings.
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Chosen", into = "Chosen")]
pub struct SystemConfig {
    pub entry: &'static SystemEntry,
    /// The limits of the system's completions.
    pub decoding: Decoding,
    /// Every setting, as [`SystemConfig::with`] reads it.
    pub table: toml::Table,
    settings: Arc<dyn Settings>,
}

impl SystemConfig {
    pub fn parse<S: AsRef<str>>(name: &str, given: &[S]) -> Result<SystemConfig, Failure> {
        let given = pairs(given)?.into_iter().map(|(key, value)| (key, value.into()));
        SystemConfig::with(SystemEntry::named(name)?, &given.collect())
    }

    /// The system of a plan; a missing key has its default.
    pub fn with(entry: &'static SystemEntry, table: &toml::Table) -> Result<SystemConfig, Failure> {
        (entry.configure)(entry, table.clone())
    }

    /// The defaults of the settings' type, changed by those of the entry and by the settings that are given.
    pub fn new<S>(entry: &'static SystemEntry, given: toml::Table) -> Result<SystemConfig, Failure>
    where
        S: Settings + Default + Serialize + DeserializeOwned + 'static,
    {
        let table = toml::Table::try_from(S::default()).map_err(|error| unusable(entry, &error))?;
        let own = entry.defaults.iter();
        let own = own.map(|(key, value)| ((*key).to_owned(), (*value).into()));
        let table = replace::<S>(table, own)?;
        SystemConfig::over(entry, table, given, |settings: S| Arc::new(settings))
    }

    /// The settings of a table, which has their defaults, changed by those that are given.
    pub(super) fn over<S: Serialize + DeserializeOwned>(
        entry: &'static SystemEntry,
        defaults: toml::Table,
        given: toml::Table,
        finish: impl FnOnce(S) -> Arc<dyn Settings>,
    ) -> Result<SystemConfig, Failure> {
        let table = replace::<S>(defaults, given)?;
        let settings = table.try_into::<S>().map_err(|error| unusable(entry, &error))?;
        // Values as serde writes them, however they were given.
        let table = toml::Table::try_from(&settings).map_err(|error| unusable(entry, &error))?;
        // The settings that every system has.
        let decoding = table.clone().try_into().map_err(|error| unusable(entry, &error))?;
        Ok(SystemConfig { entry, decoding, table, settings: finish(settings) })
    }

    pub fn build(&self, prompts: &PromptSet, exemplars: &Arc<Exemplars>) -> Built {
        self.settings.build(&Given { prompts, exemplars })
    }

    /// Systems that read no corpus and no exemplars, with equal fingerprints, give equal answers to equal items, byte for byte: of the fingerprints
    /// of the agents' models.
    pub fn fingerprint(&self, models: &[&str], prompts_sha256: &str) -> String {
        let whole = [json!(models), json!(prompts_sha256), json!(self.table)];
        let digest = sha256(format!("{} {}", self.entry.plan_name, json!(whole)));
        format!("wr_{}", &digest[..16])
    }

    /// What describes it, where that is no part of wardround.
    pub fn file(&self) -> Option<&SystemText> {
        let file = self.entry.file.filter(|file| file.is_outside());
        file.map(|file| &file.source)
    }

    /// The largest number of models that its agents can have.
    pub fn models(&self) -> usize {
        let models = self.slots().into_iter().map(|slot| slot.model + 1);
        models.max().unwrap_or(0)
    }

    /// The number of models of a panel that names none.
    pub fn default_models(&self) -> usize {
        self.entry.default_models.unwrap_or_else(|| self.models())
    }

    pub fn call_settings(&self, decoding: DecodingMode) -> CallSettings {
        CallSettings {
            decoding,
            thinking: self.decoding.thinking.told(),
            max_tokens: self.decoding.max_tokens,
            sends_seed: self.decoding.call_seed == CallSeed::Sent,
        }
    }

    pub fn prompts_sha256(&self, prompts: &PromptSet) -> String {
        let built_in = prompts.sha256(self.entry.prompts);
        match self.file() {
            Some(file) => sha256(built_in + &json!(file).to_string()),
            None => built_in,
        }
    }

    /// The template by which its prompts quote a passage.
    pub fn passage(&self, prompts: &PromptSet) -> Result<String, PromptError> {
        prompts.get(&format!("{}/passage", self.entry.prompts), &["text"])
    }
}

/// Of flags, until their verb names the system.
impl Default for SystemConfig {
    fn default() -> SystemConfig {
        SystemConfig {
            entry: &SYSTEMS[0],
            decoding: Decoding::default(),
            table: toml::Table::new(),
            settings: Arc::new(medmad::settings::Settings::default()),
        }
    }
}

/// As plans have it.
#[derive(Serialize, Deserialize)]
struct Chosen {
    system: Which,
    settings: toml::Table,
}

impl From<SystemConfig> for Chosen {
    fn from(config: SystemConfig) -> Chosen {
        let named = || Which::Named(config.entry.plan_name.to_owned());
        let system = config.file().cloned().map_or_else(named, Which::File);
        Chosen { system, settings: config.table }
    }
}

impl TryFrom<Chosen> for SystemConfig {
    type Error = Failure;

    fn try_from(chosen: Chosen) -> Result<SystemConfig, Failure> {
        SystemConfig::with(chosen.system.entry()?, &chosen.settings)
    }
}

fn unusable(entry: &SystemEntry, error: &dyn std::fmt::Display) -> Failure {
    Failure::refused(format!("{}: {error}", entry.name))
}

/// Agents, calls, searches, and the system itself are its settings'.
impl Deref for SystemConfig {
    type Target = dyn Settings;

    fn deref(&self) -> &Self::Target {
        &*self.settings
    }
}

impl std::fmt::Debug for SystemConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.entry.plan_name, self.table)
    }
}

#[cfg(test)]
mod tests;
