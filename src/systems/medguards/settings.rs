//! The settings of MedGuards, and its agents.

use std::sync::Arc;

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::protocol::MedGuards;
use crate::diagnosis::Failure;
use crate::prompts::PromptSet;
use crate::record::NoteStage;
use crate::systems::System;
use crate::systems::config::{self, Slot};
use crate::systems::decoding::Decoding;
use crate::systems::exemplars::Exemplars;
use crate::systems::settings::{settings, spelled, switch, whole};
use crate::text::Aligner;

/// The division of tasks among agents (Table 11), named by their number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// One for everything, in one call.
    One,
    /// One detects and locates in one call, one corrects.
    Two,
    /// One for each task.
    Three,
    /// Three detect; one locates and corrects in one call.
    Four,
    /// Three detect, three locate, one corrects: the paper's.
    Seven,
    /// The same, with a second one that checks the correction.
    Eight,
}

impl Structure {
    const ALL: [Structure; 6] = [
        Structure::One,
        Structure::Two,
        Structure::Three,
        Structure::Four,
        Structure::Seven,
        Structure::Eight,
    ];

    /// The numbers of agents that detect, locate and correct.
    fn counts(self) -> [usize; 3] {
        match self {
            Structure::One => [1, 0, 0],
            Structure::Two => [1, 0, 1],
            Structure::Three => [1, 1, 1],
            Structure::Four => [3, 1, 0],
            Structure::Seven => [3, 3, 1],
            Structure::Eight => [3, 3, 2],
        }
    }

    pub fn agents(self) -> u32 {
        self.counts().into_iter().sum::<usize>() as u32
    }

    /// An agent's index into the panel's members.
    pub fn member(self, agent: Agent) -> usize {
        self.counts()[..agent.role as usize].iter().sum::<usize>() + agent.number
    }
}

/// An agent of one stage, numbered from 0.
#[derive(Clone, Copy, Debug)]
pub struct Agent {
    pub role: NoteStage,
    pub number: usize,
}

impl Agent {
    /// Its name in logs, such as `det1`.
    pub fn name(self) -> String {
        let role = match self.role {
            NoteStage::Detection => "det",
            NoteStage::Localisation => "loc",
            NoteStage::Correction => "corr",
        };
        format!("{role}{}", self.number + 1)
    }
}

/// How a disagreement of two agents is resolved (Table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbitration {
    /// By a third who reads both replies (in-context learning).
    Icl,
    /// By the majority with a third who does not read them.
    Vote,
    /// As `Icl`; the third is also asked where two detectors agree and both are less confident than `arbitration_below` (Appendix A.13).
    Confidence,
}

/// How agents name a sentence (Figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Localisation {
    /// By its words, which are aligned with the note's sentences.
    Soft,
    /// By its number; the prompt numbers the sentences.
    Hard,
}

settings! {
    /// How MedGuards runs; the defaults are the paper's.
    pub struct Settings {
        #[serde(rename = "agents", with = "structure")]
        pub structure: Structure = Structure::Seven,
        pub arbitration: Arbitration = Arbitration::Icl => ["agents=4 or agents=7 or agents=8"],
        /// In percent, as agents state it; only with `arbitration=confidence`. The highest bound of Table 16's text is the default.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub arbitration_below: u32 = 90 => ["arbitration=confidence"],
        /// Whether the arbiter of detection reads both agents' reasons (Table 4).
        #[serde(with = "switch")]
        pub det_reasoning: bool = true => ["agents=4 or agents=7 or agents=8", "arbitration!=vote"],
        /// Whether it reads their confidences.
        #[serde(with = "switch")]
        pub det_confidence: bool = true => ["agents=4 or agents=7 or agents=8", "arbitration!=vote"],
        /// The same for the arbiter of localisation.
        #[serde(with = "switch")]
        pub loc_reasoning: bool = true => ["agents=7 or agents=8", "arbitration!=vote"],
        #[serde(with = "switch")]
        pub loc_confidence: bool = true => ["agents=7 or agents=8", "arbitration!=vote"],
        pub localisation: Localisation = Localisation::Soft,
        pub aligner: Aligner = Aligner::SequenceMatcher,
        /// Whether replies are parsed and passed on as the published code does, bugs included.
        #[serde(with = "switch")]
        pub release_compat: bool = false,
    } with decoding: Decoding
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        let counts = NoteStage::ALL.into_iter().zip(self.structure.counts());
        let agents =
            counts.flat_map(|(role, count)| (0..count).map(move |number| Agent { role, number }));
        let slots = agents.map(|agent| {
            // With three models, the first two work independently, the third arbitrates and corrects.
            let model = if agent.role == NoteStage::Correction { 2 } else { agent.number };
            Slot::new(agent.name(), model)
        });
        slots.collect()
    }

    fn max_calls(&self) -> u32 {
        // Every agent is asked once.
        self.structure.agents()
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        Ok(Box::new(MedGuards::new(self, prompts)?))
    }
}

/// A structure as its number of agents.
mod structure {
    use super::*;

    pub fn serialize<S: Serializer>(structure: &Structure, to: S) -> Result<S::Ok, S::Error> {
        structure.agents().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<Structure, D::Error> {
        let agents = spelled(value)?;
        let mut structures = Structure::ALL.into_iter();
        let named = structures.find(|one| one.agents().to_string() == agents);
        named.ok_or_else(|| {
            let known = Structure::ALL.map(|one| one.agents().to_string());
            D::Error::custom(format!("expected {}", known.join(" or ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::config::Settings as _;

    #[test]
    fn a_structure_has_as_many_slots_as_agents() {
        for structure in Structure::ALL {
            let settings = Settings { structure, ..Settings::default() };
            assert_eq!(settings.slots().len() as u32, structure.agents());
        }
        let slots = Settings::default().slots();
        let names: Vec<&str> = slots.iter().map(|slot| slot.agent.as_str()).collect();
        assert_eq!(names, ["det1", "det2", "det3", "loc1", "loc2", "loc3", "corr1"]);
        let models: Vec<usize> = slots.iter().map(|slot| slot.model).collect();
        assert_eq!(models, [0, 1, 2, 0, 1, 2, 2]);
    }
}
