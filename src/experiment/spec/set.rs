//! `--set KEY=VALUE`: a setting of the system, an agent's model, how an agent samples.

use std::collections::BTreeMap;

use itertools::Itertools;

use crate::diagnosis::Failure;
use crate::panel::SamplingChoice;
use crate::systems::settings::pairs;

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
        let given = pairs(given)?;
        if let Some((key, _)) = given.iter().duplicates_by(|(key, _)| key).next() {
            return Err(Failure::usage(format!("--set {key} is given twice"), "give it once"));
        }
        for (key, value) in given {
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
