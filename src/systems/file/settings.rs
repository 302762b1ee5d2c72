//! The settings of a system that a file describes: those that it lists, its own choices, and those of every system.

use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize};

use super::ask::Staged;
use super::schema::SystemFile;
use crate::retrieval::Rerank;
use crate::systems::config::{self, Built, Given, SearchSettings, Slot, SystemConfig};
use crate::systems::decoding::Decoding;
use crate::systems::exemplars::Ranking;
use crate::systems::medreflex::settings::Temperatures;
use crate::systems::settings::{SettingsError, replace, spelling, switched, whole};
use crate::systems::table::SystemEntry;

/// Those of [`Settings`] that a file may list.
const LISTED: [&str; 5] = ["choice", "mab_compat", "samples", "shots", "temperatures"];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(flatten)]
    pub decoding: Decoding,
    /// Exemplars in a prompt.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some::<0, 64, _>"
    )]
    pub shots: Option<u32>,
    /// Draws of each call.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "some::<1, 100, _>"
    )]
    pub samples: Option<u32>,
    /// How exemplars are ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Ranking>,
    /// The stages', or the models' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperatures: Option<Temperatures>,
    /// Whether answers are parsed and counted as MedAgentBoard does, bugs included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mab_compat: Option<Compat>,
    /// The file's own choices.
    #[serde(flatten)]
    own: toml::Table,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    Off,
    On,
}

fn some<'de, const MIN: u64, const MAX: u64, D: Deserializer<'de>>(
    value: D,
) -> Result<Option<u32>, D::Error> {
    whole::<MIN, MAX, D, u32>(value).map(Some)
}

impl Settings {
    /// The word of a choice; empty where there is no such choice.
    pub fn word(&self, key: &str) -> String {
        let table = toml::Table::try_from(self).unwrap_or_default();
        table.get(key).cloned().map(spelling).unwrap_or_default()
    }
}

impl SystemFile {
    /// The words of a choice of the file's own; `None` where it has no such choice.
    pub(super) fn words(&self, key: &str) -> Option<&[toml::Value]> {
        Some(self.settings.get(key)?.as_array()?)
    }

    /// A setting's value, as plans have it.
    fn value(&self, key: &str, value: toml::Value) -> Result<toml::Value, SettingsError> {
        let Some(words) = self.words(key) else { return Ok(value) };
        let given = spelling(switched(value));
        let found = words.iter().find(|word| spelling((*word).clone()) == given).cloned();
        found.ok_or_else(|| {
            let words: Vec<String> = words.iter().cloned().map(spelling).collect();
            let expected = words.join(" or ");
            SettingsError::BadValue { key: key.to_owned(), value: given, expected }
        })
    }

    /// The settings that the system has, each with its default.
    pub(super) fn defaults(&self) -> Result<toml::Table, SettingsError> {
        let mut table = toml::Table::try_from(Settings::default()).unwrap_or_default();
        for (key, value) in &self.settings {
            let first = value.as_array().and_then(|words| words.first()).unwrap_or(value);
            if value.is_array() || LISTED.contains(&key.as_str()) {
                table.insert(key.clone(), first.clone());
            }
            table = replace::<Settings>(table, [(key.clone(), self.value(key, first.clone())?)])?;
        }
        Ok(table)
    }
}

/// The system of an entry with a file, with the settings that are given.
pub fn configure(
    entry: &'static SystemEntry,
    given: toml::Table,
) -> Result<SystemConfig, SettingsError> {
    let unknown =
        || SettingsError::UnknownSystem { name: entry.name.to_owned(), known: Vec::new() };
    let file = entry.file.ok_or_else(unknown)?;
    let value = |(key, value): (String, toml::Value)| {
        let value = file.value(&key, value)?;
        Ok::<_, SettingsError>((key, value))
    };
    let given = given.into_iter().map(value).collect::<Result<_, _>>()?;
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
        let groups = self.file.groups().into_iter();
        let calls = groups.flat_map(|(group, rounds)| {
            let stages = self.file.stages[group].iter();
            let there = stages.filter(|stage| stage.is_there(&self.settings));
            there.map(move |stage| {
                let asked = self.file.agents.iter().filter(|agent| stage.asks(agent));
                (asked.count() as u32).saturating_mul(rounds * stage.tries)
            })
        });
        let calls = calls.fold(0_u32, u32::saturating_add);
        calls.saturating_mul(self.settings.samples.unwrap_or(1))
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
