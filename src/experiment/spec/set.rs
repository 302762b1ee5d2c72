//! `--set KEY=VALUE`: a setting of the system, an agent's model, how an agent samples.

use std::collections::{BTreeMap, BTreeSet};

use crate::diagnosis::Failure;
use crate::panel::SamplingChoice;
use crate::systems::SystemConfig;
use crate::systems::settings::pairs;
use crate::systems::table::SystemEntry;

/// What `--set` says, by kind.
#[derive(Debug, Default)]
pub struct Set {
    /// The system's settings.
    pub settings: toml::Table,
    /// `slot.AGENT=MODEL`
    pub models: BTreeMap<String, String>,
    /// `slot.AGENT.PARAMETER=VALUE`
    pub sampling: BTreeMap<String, SamplingChoice>,
}

impl Set {
    pub fn of(given: &[String]) -> Result<Set, Failure> {
        let mut set = Set::default();
        let mut keys = BTreeSet::new();
        for (key, value) in pairs(given)? {
            if !keys.insert(key.clone()) {
                return Err(Failure::usage(format!("--set {key} is given twice"), "give it once"));
            }
            let Some(slot) = key.strip_prefix("slot.") else {
                set.settings.insert(key, value.into());
                continue;
            };
            let Some((agent, parameter)) = slot.rsplit_once('.') else {
                set.models.insert(slot.to_owned(), value);
                continue;
            };
            let sampling = set.sampling.entry(agent.to_owned()).or_default();
            sampling.set(parameter, &value).map_err(|expected| {
                Failure::usage(
                    format!("--set {key}={value}: {expected}"),
                    "write an agent's sampling as --set slot.AGENT.temperature=0.2",
                )
            })?;
        }
        Ok(set)
    }
}

/// Lets a system cite its sources, where it can and `given` does not say otherwise: the reader of a single note wants to see them.
///
/// # Errors
/// A system that has no defaults.
pub fn cited(system: &'static SystemEntry, given: &mut Vec<String>) -> Result<(), Failure> {
    let has = SystemConfig::with(system, &toml::Table::new())?.table.contains_key("cite");
    let is_it = |pair: &String| pair.split('=').next().map(str::trim) == Some("cite");
    if has && !given.iter().any(is_it) {
        given.push("cite=on".to_owned());
    }
    Ok(())
}
