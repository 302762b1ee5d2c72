//! The settings of a system that a file describes: numbers and choices that it lists, and those of every system.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ask::Staged;
use super::schema::SystemFile;
use crate::retrieval::Rerank;
use crate::systems::config::{self, Built, Given, SearchSettings, Slot, SystemConfig};
use crate::systems::decoding::Decoding;
use crate::systems::exemplars::Ranking;
use crate::systems::settings::{SettingsError, replace, spelling, switched};
use crate::systems::table::SystemEntry;

/// The numbers that a file may list, each with its bounds: exemplars in a prompt, draws of each call.
const NUMBERS: [(&str, i64, i64); 2] = [("shots", 0, 64), ("samples", 1, 100)];
/// The choices that it may list beside its own.
const CHOICES: [(&str, &[&str]); 3] = [
    // How exemplars are ranked.
    ("choice", &["random", "tfidf", "embedding", "fixed", "sentences"]),
    // The stages', or the models' own.
    ("temperatures", &["paper", "model"]),
    // Whether answers are parsed and counted as MedAgentBoard does, bugs included.
    ("mab_compat", &["off", "on"]),
];

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(flatten)]
    pub decoding: Decoding,
    /// The others, by name.
    #[serde(flatten)]
    words: toml::Table,
}

impl Settings {
    pub fn number(&self, key: &str) -> Option<u32> {
        self.words.get(key)?.as_integer()?.try_into().ok()
    }

    /// The word of a choice; empty where there is no such choice.
    pub fn word(&self, key: &str) -> String {
        self.words.get(key).cloned().map(spelling).unwrap_or_default()
    }

    /// How exemplars are ranked, where they are.
    pub fn ranking(&self) -> Option<Ranking> {
        self.words.get("choice")?.clone().try_into().ok()
    }

    /// Whether replies are read as MedAgentBoard reads them.
    pub fn is_compat(&self) -> bool {
        self.word("mab_compat") == "on"
    }
}

impl SystemFile {
    /// The words of a choice; `None` where the file has no such choice.
    pub(super) fn words(&self, key: &str) -> Option<Vec<toml::Value>> {
        let own = self.settings.get(key)?.as_array().cloned();
        let known = || CHOICES.iter().find(|(name, _)| *name == key);
        own.or_else(|| known().map(|(_, words)| words.iter().map(|word| (*word).into()).collect()))
    }

    /// A setting's value, as plans have it; one of every system as it is.
    fn value(&self, key: &str, value: toml::Value) -> Result<toml::Value, SettingsError> {
        let given = spelling(switched(value.clone()));
        let (found, expected) =
            if let Some((_, least, most)) = NUMBERS.iter().find(|(name, ..)| *name == key) {
                let number: Option<i64> = given.parse().ok();
                let number = number.filter(|number| (least..=most).contains(&number));
                let expected = format!("a whole number from {least} to {most}");
                (number.map(toml::Value::Integer), expected)
            } else if let Some(words) = self.words(key) {
                let found = words.iter().find(|word| spelling((*word).clone()) == given).cloned();
                let spelled: Vec<String> = words.into_iter().map(spelling).collect();
                (found, spelled.join(" or "))
            } else {
                return Ok(value);
            };
        let key = key.to_owned();
        found.ok_or(SettingsError::BadValue { key, value: given, expected })
    }

    /// The settings that the system has, each with its default.
    ///
    /// # Errors
    /// A setting that no file may list, or a value that it cannot have.
    pub(super) fn defaults(&self) -> Result<toml::Table, SettingsError> {
        let mut table = toml::Table::try_from(Decoding::default()).unwrap_or_default();
        for (key, value) in &self.settings {
            let first = value.as_array().and_then(|words| words.first()).unwrap_or(value);
            let value = self.value(key, first.clone())?;
            let is_own = NUMBERS.iter().any(|(name, ..)| name == key) || self.words(key).is_some();
            match is_own {
                true => drop(table.insert(key.clone(), value)),
                false => table = replace::<Decoding>(table, [(key.clone(), value)])?,
            }
        }
        Ok(table)
    }
}

/// The system of an entry with a file, with the settings that are given.
///
/// # Errors
/// An unknown setting, or a value that it cannot have.
pub fn configure(
    entry: &'static SystemEntry,
    given: Vec<(String, toml::Value)>,
) -> Result<SystemConfig, SettingsError> {
    let unknown =
        || SettingsError::UnknownSystem { name: entry.name.to_owned(), known: Vec::new() };
    let file = entry.file.ok_or_else(unknown)?;
    let value = |(key, value): (String, toml::Value)| {
        let value = file.value(&key, value)?;
        Ok::<_, SettingsError>((key, value))
    };
    let given = given.into_iter().map(value).collect::<Result<Vec<_>, _>>()?;
    let filed =
        |settings: Settings| Arc::new(Filed { file, settings }) as Arc<dyn config::Settings>;
    SystemConfig::over(entry, file.defaults()?, given, filed)
}

/// A file, and its settings.
struct Filed {
    file: &'static SystemFile,
    settings: Settings,
}

impl config::Settings for Filed {
    fn slots(&self) -> Vec<Slot> {
        Slot::in_order(self.file.agents.iter().cloned(), &[])
    }

    fn max_calls(&self) -> u32 {
        let slots = self.slots();
        let groups = self.file.groups().into_iter();
        let calls = groups.flat_map(|(group, rounds)| {
            let stages = self.file.stages[group].iter();
            stages.filter(|stage| stage.is_there(&self.settings)).map(move |one| (one, rounds))
        });
        let calls = calls.map(|(stage, rounds)| {
            let asked = slots.iter().filter(|slot| stage.asks(&slot.agent));
            (asked.count() as u32).saturating_mul(rounds * stage.tries)
        });
        let calls = calls.fold(0_u32, u32::saturating_add);
        calls.saturating_mul(self.settings.number("samples").unwrap_or(1))
    }

    fn search(&self) -> Option<SearchSettings> {
        let mut stages = self.file.stages.iter();
        let searches = stages.any(|stage| stage.search && stage.is_there(&self.settings));
        searches.then_some(SearchSettings { rerank: Rerank::Off, labels: false })
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(Staged::new((self.file, &self.settings, self.slots()), given)?))
    }
}
