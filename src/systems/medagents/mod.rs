//! MedAgents (Tang et al., Findings of ACL 2024): experts of chosen fields analyse, a report summarises, they vote on it.
//!
//! In two forms: [`harness`] is MedAgentBoard's, with which MED-MAD's Table 1 compares; [`original`] is the authors'.

pub mod harness;
pub mod original;
pub mod texts;

use std::sync::Arc;

use self::harness::Harness;
use self::original::Original;
use super::System;
use super::config::{self, Slot};
use super::decoding::Decoding;
use super::exemplars::Exemplars;
use super::settings::{Form, settings, switch, whole};
use crate::diagnosis::Failure;
use crate::prompts::PromptSet;

/// The number of doctors; the experts of the original use their members of the panel in turn.
const DOCTORS: usize = 3;
/// Members of the panel, by index: the doctors come first.
const GATHERER: usize = DOCTORS;
const META: usize = DOCTORS + 1;
const DECISION: usize = DOCTORS + 2;

/// Experts of the original on the question, and on its options.
const QUESTION_EXPERTS: usize = 5;
const OPTION_EXPERTS: usize = 2;

settings! {
    /// How MedAgents runs.
    pub struct Settings {
        /// In the original the authors decode greedily; here every model keeps its own decoding, as in all systems.
        pub form: Form = Form::Harness,
        /// Rounds of review at most; in the original, of voting.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub max_rounds: u32 = 3,
        /// Whether replies are parsed as MedAgentBoard does: only valid JSON, and answers compared as written. As there, only reviewers who do
        /// not agree are then asked for a letter.
        #[serde(with = "switch")]
        pub mab_compat: bool = false => ["form=harness"],
    } with decoding: Decoding
}

fn doctor_name(doctor: usize) -> String {
    format!("doctor-{}", doctor + 1)
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        // The doctors have one of the panel's models each; all other agents have the first.
        let doctors = (0..DOCTORS).map(doctor_name);
        Slot::in_order(doctors, &["gatherer", "meta", "decision"])
    }

    fn max_calls(&self) -> u32 {
        let experts = (QUESTION_EXPERTS + OPTION_EXPERTS) as u32;
        match self.form {
            Form::Harness => 2 + self.max_rounds * (2 * DOCTORS as u32 + 1),
            Form::Original => 4 + experts + self.max_rounds * (2 * experts + 1),
        }
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        Ok(match self.form {
            Form::Harness => Box::new(Harness::new(self, prompts)?),
            Form::Original => Box::new(Original::new(self, prompts)?),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn doctors_sit_on_the_panels_models_and_the_others_on_the_first() {
        let slots = config::Settings::slots(&Settings::default());
        let names: Vec<&str> = slots.iter().map(|slot| slot.agent.as_str()).collect();
        assert_eq!(names, ["doctor-1", "doctor-2", "doctor-3", "gatherer", "meta", "decision"]);
        let models: Vec<usize> = slots.iter().map(|slot| slot.model).collect();
        assert_eq!(models, [0, 1, 2, 0, 0, 0]);
        assert_eq!(names[GATHERER], "gatherer");
        assert_eq!((names[META], names[DECISION]), ("meta", "decision"));
    }
}
