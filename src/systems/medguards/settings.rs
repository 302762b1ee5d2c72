//! The switches of MedGuards: parsed from `key=value`, checked, and written into the plan, every one of them; and its seats.

use crate::systems::decoding::Decoding;
use crate::systems::protocol::Seat;
use crate::systems::settings::{SettingsError, bad, on_off, one_of, switch};
use crate::text::Aligner;

const KEYS: [&str; 12] = [
    "agents",
    "arbitration",
    "det_reasoning",
    "det_confidence",
    "loc_reasoning",
    "loc_confidence",
    "localisation",
    "aligner",
    "release_compat",
    "record_chars",
    "thinking",
    "max_tokens",
];

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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arbitration {
    /// By a third who reads what both said: in-context learning.
    Icl,
    /// By the majority with a third who does not.
    Vote,
}

impl Arbitration {
    fn name(self) -> &'static str {
        match self {
            Arbitration::Icl => "icl",
            Arbitration::Vote => "vote",
        }
    }
}

/// How a sentence is named (Figure 3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Localisation {
    /// By its words, which are aligned with the note's sentences.
    Soft,
    /// By its number; the prompt numbers the sentences.
    Hard,
}

impl Localisation {
    fn name(self) -> &'static str {
        match self {
            Localisation::Soft => "soft",
            Localisation::Hard => "hard",
        }
    }
}

/// How MedGuards runs; the defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub structure: Structure,
    pub arbitration: Arbitration,
    /// Whether the arbiter of detection reads the reasons of both (Table 4).
    pub det_reasoning: bool,
    /// Whether it reads how sure they are.
    pub det_confidence: bool,
    /// The same for the arbiter of localisation.
    pub loc_reasoning: bool,
    pub loc_confidence: bool,
    pub localisation: Localisation,
    pub aligner: Aligner,
    /// Whether outputs are read and passed on as the published code does, with its mistakes.
    pub release_compat: bool,
    /// The grammar gives reasons [`crate::systems::form::STEPS`] strings.
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

impl Settings {
    /// The slots. With three models, the first two are the agents who work alone, the third arbitrates and corrects.
    pub fn seats(&self) -> Vec<Seat> {
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
        slots
            .map(|&(agent, model)| Seat::new(agent, model))
            .collect()
    }

    /// Calls on a note, at most: every agent speaks once.
    pub fn max_calls(&self) -> u32 {
        self.structure.agents()
    }

    /// Every setting, spelled as [`Settings::set`] reads it.
    pub fn to_table(&self) -> toml::Table {
        let mut table = self.decoding.to_table();
        let mut text = |key: &str, value: &str| table.insert(key.to_owned(), value.into());
        text("arbitration", self.arbitration.name());
        text("det_reasoning", on_off(self.det_reasoning));
        text("det_confidence", on_off(self.det_confidence));
        text("loc_reasoning", on_off(self.loc_reasoning));
        text("loc_confidence", on_off(self.loc_confidence));
        text("localisation", self.localisation.name());
        text("aligner", self.aligner.name());
        text("release_compat", on_off(self.release_compat));
        let agents = i64::from(self.structure.agents());
        table.insert("agents".into(), agents.into());
        table
    }

    /// Changes one setting.
    ///
    /// # Errors
    /// A key that is none, or a value that it cannot have.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), SettingsError> {
        match key {
            "agents" => {
                let mut structures = Structure::ALL.into_iter();
                let named = structures.find(|one| one.agents().to_string() == value);
                self.structure = named.ok_or_else(|| {
                    let known = Structure::ALL.map(|one| one.agents().to_string());
                    bad(key, value, known.join(" or "))
                })?;
            }
            "arbitration" => {
                use Arbitration::{Icl, Vote};
                self.arbitration = one_of(key, value, [Icl, Vote], Arbitration::name)?;
            }
            "det_reasoning" => self.det_reasoning = switch(key, value)?,
            "det_confidence" => self.det_confidence = switch(key, value)?,
            "loc_reasoning" => self.loc_reasoning = switch(key, value)?,
            "loc_confidence" => self.loc_confidence = switch(key, value)?,
            "localisation" => {
                use Localisation::{Hard, Soft};
                self.localisation = one_of(key, value, [Soft, Hard], Localisation::name)?;
            }
            "aligner" => self.aligner = one_of(key, value, Aligner::ALL, Aligner::name)?,
            "release_compat" => self.release_compat = switch(key, value)?,
            _ => self.decoding.set(key, value, &KEYS)?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_has_as_many_slots_as_agents() {
        for structure in Structure::ALL {
            let settings = Settings {
                structure,
                ..Settings::default()
            };
            assert_eq!(settings.seats().len() as u32, structure.agents());
        }
        let seats = Settings::default().seats();
        let names: Vec<&str> = seats.iter().map(|seat| seat.agent.as_str()).collect();
        assert_eq!(
            names,
            ["det1", "det2", "det3", "loc1", "loc2", "loc3", "corr1"]
        );
        let models: Vec<usize> = seats.iter().map(|seat| seat.model).collect();
        assert_eq!(models, [0, 1, 2, 0, 1, 2, 2]);
    }
}
