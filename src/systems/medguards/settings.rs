//! The settings of MedGuards, and its agents.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use strum::VariantArray;

use super::protocol::MedGuards;
use crate::record::NoteStage;
use crate::systems::config::{self, Built, Given, Slot};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{settings, spelled, switch};

/// The division of tasks among agents (Table 11), by their number: how many detect, locate and correct. One agent does everything in one
/// call; of two the first detects and locates, of four the last locates and corrects in one call; of eight a second one checks the
/// correction. The paper's are seven.
const STRUCTURES: [(u32, [usize; 3]); 6] = [
    (1, [1, 0, 0]),
    (2, [1, 0, 1]),
    (3, [1, 1, 1]),
    (4, [3, 1, 0]),
    (7, [3, 3, 1]),
    (8, [3, 3, 2]),
];

/// The name in logs of a stage's agent, by its number from 0: `det1`.
pub fn agent_name(stage: NoteStage, number: usize) -> String {
    let stage = match stage {
        NoteStage::Detection => "det",
        NoteStage::Localisation => "loc",
        NoteStage::Correction => "corr",
    };
    format!("{stage}{}", number + 1)
}

/// How a disagreement of two agents is resolved (Table 5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arbitration {
    /// By a third who reads both replies (in-context learning).
    Icl,
    /// By the majority with a third who does not read them.
    Vote,
}

/// How agents name a sentence (Figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Localisation {
    /// By its words: the sentence that they are a part of, else the one that is likest, where it is like enough.
    Soft,
    /// By its words: the sentence that is likest, however unlike it is, as in the paper.
    Likest,
    /// By its number; the prompt numbers the sentences.
    Hard,
}

settings! {
    /// How MedGuards runs; the defaults are the paper's.
    pub struct Settings {
        /// Of one of the structures of Table 11.
        #[serde(deserialize_with = "structure")]
        pub agents: u32 = 7,
        pub arbitration: Arbitration = Arbitration::Icl,
        /// Whether the arbiter of detection reads both agents' reasons (Table 4).
        #[serde(with = "switch")]
        pub det_reasoning: bool = true,
        /// Whether it reads their confidences.
        #[serde(with = "switch")]
        pub det_confidence: bool = true,
        /// The same for the arbiter of localisation.
        #[serde(with = "switch")]
        pub loc_reasoning: bool = true,
        #[serde(with = "switch")]
        pub loc_confidence: bool = true,
        pub localisation: Localisation = Localisation::Soft,
    } with decoding: Decoding
}

impl Settings {
    fn counts(&self) -> [usize; 3] {
        let found = STRUCTURES.into_iter().find(|(agents, _)| *agents == self.agents);
        found.map_or([0; 3], |(_, counts)| counts)
    }

    /// How many agents have this task.
    pub fn count(&self, stage: NoteStage) -> usize {
        self.counts()[stage as usize]
    }

    /// An agent's index into the panel's members.
    pub fn member(&self, stage: NoteStage, number: usize) -> usize {
        self.counts()[..stage as usize].iter().sum::<usize>() + number
    }
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        let counts = NoteStage::VARIANTS.iter().copied().zip(self.counts());
        let agents =
            counts.flat_map(|(stage, count)| (0..count).map(move |number| (stage, number)));
        let slots = agents.map(|(stage, number)| {
            // With three models, the first two work independently, the third arbitrates and corrects.
            let model = if stage == NoteStage::Correction { 2 } else { number };
            Slot::new(agent_name(stage, number), model)
        });
        slots.collect()
    }

    fn max_calls(&self) -> u32 {
        // Every agent is asked once.
        self.agents
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(MedGuards::new(self, given.prompts)?))
    }
}

fn structure<'de, D: Deserializer<'de>>(value: D) -> Result<u32, D::Error> {
    let agents = spelled(value)?;
    let known = STRUCTURES.map(|(agents, _)| agents.to_string());
    let place = known.iter().position(|one| *one == agents);
    let expected = || D::Error::custom(format!("expected {}", known.join(" or ")));
    place.map(|place| STRUCTURES[place].0).ok_or_else(expected)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::config::Settings as _;

    #[test]
    fn a_structure_has_as_many_slots_as_agents() {
        for (agents, _) in STRUCTURES {
            let settings = Settings { agents, ..Settings::default() };
            assert_eq!(settings.slots().len() as u32, agents);
        }
        let slots = Settings::default().slots();
        let names: Vec<&str> = slots.iter().map(|slot| slot.agent.as_str()).collect();
        assert_eq!(names, ["det1", "det2", "det3", "loc1", "loc2", "loc3", "corr1"]);
        let models: Vec<usize> = slots.iter().map(|slot| slot.model).collect();
        assert_eq!(models, [0, 1, 2, 0, 1, 2, 2]);
    }
}
