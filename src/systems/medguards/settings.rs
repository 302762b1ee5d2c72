//! The settings of MedGuards, and its seats.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::protocol::MedGuards;
use crate::prompts::{PromptError, PromptSet};
use crate::systems::System;
use crate::systems::config::{self, Seat};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{spelled, switch};
use crate::text::Aligner;

/// Who does what (Table 11), named by how many agents there are.
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
    /// The same, with a second who checks the correction.
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

    pub fn agents(self) -> u32 {
        match self {
            Structure::One => 1,
            Structure::Two => 2,
            Structure::Three => 3,
            Structure::Four => 4,
            Structure::Seven => 7,
            Structure::Eight => 8,
        }
    }
}

/// How two agents who differ are settled (Table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbitration {
    /// By a third who reads what both said: in-context learning.
    Icl,
    /// By the majority with a third who does not.
    Vote,
}

/// How a sentence is named (Figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Localisation {
    /// By its words, which are aligned with the note's sentences.
    Soft,
    /// By its number; the prompt numbers the sentences.
    Hard,
}

/// How MedGuards runs; the defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    #[serde(rename = "agents", with = "structure")]
    pub structure: Structure,
    pub arbitration: Arbitration,
    /// Whether the arbiter of detection reads the reasons of both (Table 4).
    #[serde(with = "switch")]
    pub det_reasoning: bool,
    /// Whether it reads how sure they are.
    #[serde(with = "switch")]
    pub det_confidence: bool,
    /// The same for the arbiter of localisation.
    #[serde(with = "switch")]
    pub loc_reasoning: bool,
    #[serde(with = "switch")]
    pub loc_confidence: bool,
    pub localisation: Localisation,
    pub aligner: Aligner,
    /// Whether outputs are read and passed on as the published code does, with its mistakes.
    #[serde(with = "switch")]
    pub release_compat: bool,
    /// The grammar gives reasons [`crate::systems::form::STEPS`] strings.
    #[serde(flatten)]
    pub decoding: Decoding,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            structure: Structure::Seven,
            arbitration: Arbitration::Icl,
            det_reasoning: true,
            det_confidence: true,
            loc_reasoning: true,
            loc_confidence: true,
            localisation: Localisation::Soft,
            aligner: Aligner::SequenceMatcher,
            release_compat: false,
            decoding: Decoding::default(),
        }
    }
}

impl config::Settings for Settings {
    fn seats(&self) -> Vec<Seat> {
        // With three models, the first two are the agents who work alone, the third arbitrates and corrects.
        const DETECTORS: [(&str, usize); 3] = [("det1", 0), ("det2", 1), ("det3", 2)];
        const LOCATORS: [(&str, usize); 3] = [("loc1", 0), ("loc2", 1), ("loc3", 2)];
        const CORRECTORS: [(&str, usize); 2] = [("corr1", 2), ("corr2", 2)];
        let (detectors, locators, correctors) = match self.structure {
            Structure::One => (1, 0, 0),
            Structure::Two => (1, 0, 1),
            Structure::Three => (1, 1, 1),
            Structure::Four => (3, 1, 0),
            Structure::Seven => (3, 3, 1),
            Structure::Eight => (3, 3, 2),
        };
        let slots = DETECTORS[..detectors]
            .iter()
            .chain(&LOCATORS[..locators])
            .chain(&CORRECTORS[..correctors]);
        slots.map(|&(agent, model)| Seat::new(agent, model)).collect()
    }

    fn max_calls(&self) -> u32 {
        // Every agent speaks once.
        self.structure.agents()
    }

    fn decoding(&self) -> &Decoding {
        &self.decoding
    }

    fn build(&self, prompts: &PromptSet) -> Result<Box<dyn System>, PromptError> {
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
            assert_eq!(settings.seats().len() as u32, structure.agents());
        }
        let seats = Settings::default().seats();
        let names: Vec<&str> = seats.iter().map(|seat| seat.agent.as_str()).collect();
        assert_eq!(names, ["det1", "det2", "det3", "loc1", "loc2", "loc3", "corr1"]);
        let models: Vec<usize> = seats.iter().map(|seat| seat.model).collect();
        assert_eq!(models, [0, 1, 2, 0, 1, 2, 2]);
    }
}
