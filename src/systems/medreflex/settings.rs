//! The settings of MedReAct'N'MedReFlex and MedReAct. Defaults are the paper's where it agrees with its release, else chosen from both.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::protocol::MedReflex;
use crate::retrieval::Rerank;
use crate::systems::config::{self, Built, Given, Slot};
use crate::systems::decoding::Decoding;
use crate::systems::settings::{settings, spelled, whole};

/// Which sampling temperatures are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Temperatures {
    /// The published configuration's for each agent, with top-p, top-k and min-p off, and its limits of tokens.
    #[default]
    Paper,
    /// The models' own, or the run's.
    Model,
}

settings! {
    /// How MedReAct runs: one turn without reviews, the parser at its end whatever happened.
    pub struct ReactSettings {
        /// Steps of a turn at most.
        #[serde(rename = "react_turns", deserialize_with = "whole::<1, 100, _, _>")]
        pub steps: u32 = 10,
        /// Chunks that a search retrieves.
        #[serde(deserialize_with = "whole::<1, 10_000, _, _>")]
        pub retrieve_top_k: usize = 50,
        /// Passages of these that prompts show.
        #[serde(deserialize_with = "whole::<1, 1_000, _, _>")]
        pub rerank_top_k: usize = 20,
        pub rerank: Rerank = Rerank::default(),
        pub temperatures: Temperatures = Temperatures::default(),
    } with decoding: Decoding
}

settings! {
    /// How MedReAct'N'MedReFlex runs: how an answer is reviewed, and how often it may be tried again.
    pub struct Settings {
        /// Turns at most.
        #[serde(rename = "reflexion_turns", deserialize_with = "whole::<1, 100, _, _>")]
        pub turns: u32 = 5,
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub reviewers: u32 = 5,
        /// Minimum mean of the final scores, in hundredths.
        #[serde(rename = "avg_threshold", with = "threshold")]
        pub average: u32 = 380,
        /// Minimum of each final score.
        #[serde(rename = "min_threshold", with = "threshold")]
        pub minimum: u32 = 300,
    } with react: ReactSettings
}

impl config::Settings for ReactSettings {
    fn slots(&self) -> Vec<Slot> {
        ["react", "parser"].map(|agent| Slot::new(agent, 0)).into()
    }

    fn max_calls(&self) -> u32 {
        self.steps + 1
    }

    fn search(&self) -> Option<Rerank> {
        Some(self.rerank)
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(MedReflex::new(self, None, given.prompts)?))
    }
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        ["react", "eval", "reflex", "parser"].map(|agent| Slot::new(agent, 0)).into()
    }

    /// `M·(N + R)` steps and reviews, a reflexion after each turn but the last, and one parse.
    fn max_calls(&self) -> u32 {
        self.turns * (self.react.steps + self.reviewers + 1)
    }

    fn search(&self) -> Option<Rerank> {
        self.react.search()
    }

    fn build(&self, given: &Given<'_>) -> Built {
        Ok(Box::new(MedReflex::new(&self.react, Some(self), given.prompts)?))
    }
}

/// A number in hundredths: 3.8 is 380. Half a hundredth rounds up, however a binary fraction has it.
pub fn in_hundredths(number: f64) -> u32 {
    (number * 100.0 + 0.5 + 1e-9) as u32
}

/// A threshold in hundredths, on the scale of the scores.
mod threshold {
    use super::*;

    pub fn serialize<S: Serializer>(hundredths: &u32, to: S) -> Result<S::Ok, S::Error> {
        (f64::from(*hundredths) / 100.0).to_string().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<u32, D::Error> {
        let number = spelled(from)?.trim().parse().ok();
        let number = number.filter(|number| (1.0..=5.0).contains(number));
        let expected = || D::Error::custom("expected a number from 1 to 5");
        number.map(in_hundredths).ok_or_else(expected)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::SystemConfig;

    #[test]
    fn hundredths_round_half_up_and_stand_in_plans_as_text() {
        for (number, hundredths) in [(4.2449, 424), (4.245, 425), (0.05, 5), (3.805, 381)] {
            assert_eq!(in_hundredths(number), hundredths, "{number}");
        }
        for (given, shown) in [("4", "4"), ("3.8", "3.8"), ("4.25", "4.25"), ("1.05", "1.05")] {
            let pair = format!("avg_threshold={given}");
            let table = SystemConfig::parse("medreflex", &[pair]).unwrap().table;
            assert_eq!(table["avg_threshold"].as_str(), Some(shown));
        }
        let config = SystemConfig::parse("medreflex", &["avg_threshold=4.0"]).unwrap();
        assert_eq!(config.table["avg_threshold"].as_str(), Some("4"));
        assert_eq!(config.table["min_threshold"].as_str(), Some("3"));
        for wrong in ["", ".", "-1", "four", "1e3", "101", "4,5", "NaN"] {
            let pair = format!("avg_threshold={wrong}");
            assert!(SystemConfig::parse("medreflex", &[pair]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_note_takes_fifty_calls_at_most() {
        assert_eq!(SystemConfig::parse::<&str>("medreflex", &[]).unwrap().max_calls(), 50);
        assert_eq!(SystemConfig::parse::<&str>("medreact", &[]).unwrap().max_calls(), 11);
    }
}
