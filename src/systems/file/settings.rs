//! The settings of a system that a file describes: those that it lists, and those of every system.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::ask::Staged;
use super::schema::SystemFile;
use crate::diagnosis::Failure;
use crate::systems::config::{self, Built, Given, Slot, SystemConfig};
use crate::systems::decoding::Decoding;
use crate::systems::exemplars::Ranking;
use crate::systems::medreflex::settings::Temperatures;
use crate::systems::settings::{replace, whole};
use crate::systems::table::SystemEntry;

/// Those of [`Settings`] that a file may list.
const LISTED: [&str; 4] = ["choice", "samples", "shots", "temperatures"];

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    #[serde(flatten)]
    pub decoding: Decoding,
    /// Exemplars in a prompt.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "whole::<0, 64, _, _>")]
    pub shots: Option<u64>,
    /// Draws of each call.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(deserialize_with = "whole::<1, 100, _, _>")]
    pub samples: Option<u64>,
    /// How exemplars are ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub choice: Option<Ranking>,
    /// The stages', or the models' own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperatures: Option<Temperatures>,
}

impl SystemFile {
    /// The settings that the system has, each with its default.
    pub(super) fn defaults(&self) -> Result<toml::Table, Failure> {
        let mut table = toml::Table::try_from(Settings::default()).unwrap_or_default();
        for (key, value) in &self.settings {
            if LISTED.contains(&key.as_str()) {
                table.insert(key.clone(), value.clone());
            }
            table = replace::<Settings>(table, [(key.clone(), value.clone())])?;
        }
        Ok(table)
    }
}

/// The system of an entry with a file, with the settings that are given.
pub fn configure(entry: &'static SystemEntry, given: toml::Table) -> Result<SystemConfig, Failure> {
    let no_file = || Failure::refused(format!("{} is no file", entry.name));
    let file = entry.file.ok_or_else(no_file)?;
    let filed =
        |settings: Settings| -> Arc<dyn config::Settings> { Arc::new(Filed { file, settings }) };
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
        let calls = self.file.stages.iter().map(|stage| {
            let asked = self.file.agents.iter().filter(|agent| stage.asks(agent));
            (asked.count() as u32).saturating_mul(stage.rounds * stage.tries)
        });
        let calls = calls.fold(0_u32, u32::saturating_add);
        calls.saturating_mul(self.settings.samples.unwrap_or(1) as u32)
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(Staged::new(self.file, &self.settings, given)?))
    }
}
