//! The settings of the single-model baselines.

use serde::{Deserialize, Serialize};

use super::protocol::{AGENT, SingleLlm};
use crate::prompts::{PromptError, PromptSet};
use crate::systems::System;
use crate::systems::config::{self, Seat, SystemConfig};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{SettingsError, switch, whole};
use crate::systems::table::Entry;

/// How the model is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    #[default]
    ZeroShot,
    /// Zero-shot with two examples.
    FewShot,
    /// Reasons first, then the letter.
    Cot,
    /// A vote over zero-shot answers.
    SelfConsistency,
    /// A vote over reasoned answers.
    CotSc,
}

impl Method {
    /// Whether reasons are asked for beside the letter.
    pub fn reasons(self) -> bool {
        matches!(self, Method::Cot | Method::CotSc)
    }
}

/// How a baseline runs; the defaults are those of MED-MAD's Table 1.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Fixed by the system's name.
    #[serde(skip)]
    pub method: Method,
    /// Calls on a question, which vote.
    #[serde(deserialize_with = "whole::<1, 100, _, _>")]
    pub samples: u32,
    /// The grammar gives a thought [`crate::systems::form::STEPS`] strings.
    #[serde(flatten)]
    pub decoding: Decoding,
    /// Whether answers are read and counted as MedAgentBoard does, with its mistake.
    #[serde(with = "switch")]
    pub mab_compat: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            method: Method::default(),
            samples: 1,
            decoding: Decoding::default(),
            mab_compat: false,
        }
    }
}

/// The settings that are given, for the system of this method.
///
/// # Errors
/// A key that is none, or a value that it cannot have.
pub fn configure(
    entry: &'static Entry,
    given: Vec<(String, toml::Value)>,
    method: Method,
) -> Result<SystemConfig, SettingsError> {
    SystemConfig::new::<Settings>(entry, given, |settings| Settings { method, ..settings })
}

impl config::Settings for Settings {
    fn seats(&self) -> Vec<Seat> {
        vec![Seat::new(AGENT, 0)]
    }

    fn max_calls(&self) -> u32 {
        self.samples
    }

    fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
        Ok(Box::new(SingleLlm::new(self, prompts)?))
    }
}

#[cfg(test)]
mod tests {
    use crate::systems::config::SystemConfig;
    use crate::systems::table::SYSTEMS;

    #[test]
    fn plans_have_medagentboards_names_and_the_command_line_both() {
        for (short, name) in [
            ("zero-shot", "SingleLLM_zero_shot"),
            ("few-shot", "SingleLLM_few_shot"),
            ("cot", "SingleLLM_cot"),
            ("self-consistency", "SingleLLM_self_consistency"),
            ("cot-sc", "SingleLLM_cot_sc"),
        ] {
            let system = SystemConfig::named(short).unwrap();
            assert_eq!(system.name(), name);
            assert_eq!(SystemConfig::named(name), Ok(system));
            assert!(SYSTEMS.iter().any(|entry| entry.name == short));
        }
    }

    #[test]
    fn samples_are_those_of_table_1_unless_set() {
        let calls = |name, pairs: &[&str]| SystemConfig::parse(name, pairs).unwrap().max_calls();
        assert_eq!(calls("zero-shot", &[]), 1);
        assert_eq!(calls("few-shot", &[]), 1);
        assert_eq!(calls("cot", &[]), 1);
        assert_eq!(calls("self-consistency", &[]), 5);
        assert_eq!(calls("cot-sc", &[]), 3);
        assert_eq!(calls("cot-sc", &["samples=5"]), 5);
    }

    #[test]
    fn one_model_sits_alone() {
        let system = SystemConfig::named("cot").unwrap();
        let seats = system.seats();
        assert_eq!((seats.len(), system.models()), (1, 1));
        assert_eq!(seats[0].agent, "solo");
    }
}
