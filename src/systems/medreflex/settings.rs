//! The settings of MedReAct'N'MedReFlex and MedReAct. Defaults are the paper's where it agrees with its release, else chosen from both.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::protocol::MedReflex;
use crate::diagnosis::Failure;
use crate::prompts::PromptSet;
use crate::retrieval::Rerank;
use crate::systems::System;
use crate::systems::config::{self, SearchSettings, Slot};
use crate::systems::decoding::Decoding;
use crate::systems::exemplars::Exemplars;
use crate::systems::settings::{settings, spelled, switch, whole};

/// A number in hundredths: `3.8` is 380. More digits round half up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hundredths(pub u32);

/// Which results of earlier steps stay in the prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ResultsKept {
    #[default]
    All,
    /// Those of the latest search alone.
    Last,
}

/// The result of a note whose turns are used up without an accepted answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnExhaustion {
    #[default]
    NoError,
    /// The last answer that was given, else what the parser makes of the last history.
    LastAnswer,
}

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
    /// Settings that both systems have; flattened into the settings of each.
    pub struct Searching {
        /// Chunks that a search retrieves.
        #[serde(deserialize_with = "whole::<1, 10_000, _, _>")]
        pub retrieve_top_k: usize = 50,
        /// Passages of these that prompts show.
        #[serde(deserialize_with = "whole::<1, 1_000, _, _>")]
        pub rerank_top_k: usize = 20 => ["rerank_top_k<=retrieve_top_k"],
        pub rerank: Rerank = Rerank::default(),
        pub results_kept: ResultsKept = ResultsKept::default(),
        /// Whether passages have labels, by which an answer cites its sources.
        #[serde(with = "switch")]
        pub cite: bool = false,
        /// Whether steps are told to answer in the last one at the latest. Who obeys never has a turn without an answer, the third way out of
        /// the paper's Figure 1.
        #[serde(with = "switch")]
        pub deadline: bool = false,
        pub temperatures: Temperatures = Temperatures::default(),
        /// Whether reviews, minimum, exhaustion and sentence 0 are handled as in the published release, bugs included.
        #[serde(with = "switch")]
        pub release_compat: bool = false,
    }
}

impl Searching {
    fn settings(&self) -> SearchSettings {
        SearchSettings { rerank: self.rerank, labels: self.cite }
    }
}

settings! {
    /// How an answer is reviewed, and how often it may be tried again.
    pub struct Reviewing {
        /// Turns at most.
        #[serde(rename = "reflexion_turns", deserialize_with = "whole::<1, 100, _, _>")]
        pub turns: u32 = 5,
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub reviewers: u32 = 5,
        /// Minimum mean of the final scores.
        #[serde(rename = "avg_threshold", deserialize_with = "of_scale")]
        pub average: Hundredths = Hundredths(380),
        /// Minimum of each final score.
        #[serde(rename = "min_threshold", deserialize_with = "of_scale")]
        pub minimum: Hundredths = Hundredths(300),
        pub on_exhaustion: OnExhaustion = OnExhaustion::default() => ["release_compat=off"],
    }
}

/// The settings of either system, as the protocol needs them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Steps of a turn.
    pub steps: u32,
    /// `None`: one turn, whose answer stands.
    pub reviewing: Option<Reviewing>,
    pub searching: Searching,
    pub decoding: Decoding,
}

settings! {
    /// How MedReAct'N'MedReFlex runs.
    pub struct Settings {
        /// Steps of a turn at most.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub react_turns: u32 = 4,
    } with reviewing: Reviewing, searching: Searching, decoding: Decoding
}

impl config::Settings for Settings {
    fn slots(&self) -> Vec<Slot> {
        ["react", "eval", "reflex", "parser"].map(|agent| Slot::new(agent, 0)).to_vec()
    }

    /// `M·(N + R)` steps and reviews, a reflexion after each turn but the last, and one parse; the release has both after every turn.
    fn max_calls(&self) -> u32 {
        let Reviewing { turns, reviewers, .. } = self.reviewing;
        let asked = turns * (self.react_turns + reviewers);
        if self.searching.release_compat { asked + 2 * turns } else { asked + turns }
    }

    fn search(&self) -> Option<SearchSettings> {
        Some(self.searching.settings())
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        let protocol = Protocol {
            steps: self.react_turns,
            reviewing: Some(self.reviewing.clone()),
            searching: self.searching.clone(),
            decoding: self.decoding.clone(),
        };
        Ok(Box::new(MedReflex::new(protocol, prompts)?))
    }
}

settings! {
    /// How MedReAct alone runs: one turn without reviews, the parser at its end whatever happened.
    pub struct ReactSettings {
        /// Steps at most.
        #[serde(deserialize_with = "whole::<1, 100, _, _>")]
        pub react_turns: u32 = 10,
    } with searching: Searching, decoding: Decoding
}

impl config::Settings for ReactSettings {
    fn slots(&self) -> Vec<Slot> {
        ["react", "parser"].map(|agent| Slot::new(agent, 0)).to_vec()
    }

    fn max_calls(&self) -> u32 {
        self.react_turns + 1
    }

    fn search(&self) -> Option<SearchSettings> {
        Some(self.searching.settings())
    }

    fn build(&self, prompts: &PromptSet, _: &Arc<Exemplars>) -> Result<Box<dyn System>, Failure> {
        let protocol = Protocol {
            steps: self.react_turns,
            reviewing: None,
            searching: self.searching.clone(),
            decoding: self.decoding.clone(),
        };
        Ok(Box::new(MedReflex::new(protocol, prompts)?))
    }
}

impl FromStr for Hundredths {
    type Err = String;

    /// A decimal number from 0 on.
    fn from_str(text: &str) -> Result<Hundredths, String> {
        let refuse = || "expected a number from 0 to 100".to_owned();
        let (whole, rest) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
        let is_digits = |text: &str| text.chars().all(|c| c.is_ascii_digit());
        if whole.is_empty() && rest.is_empty() || !is_digits(whole) || !is_digits(rest) {
            return Err(refuse());
        }
        let digit = |place: usize| rest.as_bytes().get(place).map_or(0, |digit| digit - b'0');
        let whole: u32 = if whole.is_empty() { 0 } else { whole.parse().map_err(|_| refuse())? };
        let rest = u32::from(10 * digit(0) + digit(1)) + u32::from(digit(2) >= 5);
        let hundredths = whole.saturating_mul(100).saturating_add(rest);
        if hundredths <= 10_000 { Ok(Hundredths(hundredths)) } else { Err(refuse()) }
    }
}

impl fmt::Display for Hundredths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = self.0 / 100;
        match self.0 % 100 {
            0 => write!(f, "{whole}"),
            part if part % 10 == 0 => write!(f, "{whole}.{}", part / 10),
            part => write!(f, "{whole}.{part:02}"),
        }
    }
}

impl Serialize for Hundredths {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_string().serialize(to)
    }
}

/// A threshold, on the scale of the scores.
fn of_scale<'de, D: Deserializer<'de>>(from: D) -> Result<Hundredths, D::Error> {
    let number: Option<Hundredths> = spelled(from)?.parse().ok();
    let number = number.filter(|number| (Hundredths(100)..=Hundredths(500)).contains(number));
    number.ok_or_else(|| serde::de::Error::custom("expected a number from 1 to 5"))
}

impl<'de> Deserialize<'de> for Hundredths {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Hundredths, D::Error> {
        spelled(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::SystemConfig;

    #[test]
    fn hundredths_round_half_up_and_stand_in_plans_as_text() {
        let read = |text: &str| text.parse::<Hundredths>().map(|number| number.0);
        for (text, hundredths, shown) in [
            ("4", 400, "4"),
            ("3.8", 380, "3.8"),
            ("4.25", 425, "4.25"),
            ("4.2449", 424, "4.24"),
            ("4.245", 425, "4.25"),
            (".05", 5, "0.05"),
        ] {
            assert_eq!(read(text), Ok(hundredths), "{text}");
            assert_eq!(Hundredths(hundredths).to_string(), shown);
        }
        for wrong in ["", ".", "-1", "four", "1e3", "101", "4,5"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
        let config = SystemConfig::parse("medreflex", &["avg_threshold=4.0"]).unwrap();
        assert_eq!(config.table["avg_threshold"].as_str(), Some("4"));
        assert_eq!(config.table["min_threshold"].as_str(), Some("3"));
    }

    #[test]
    fn a_note_takes_fifty_calls_at_most_and_five_more_as_in_the_release() {
        let calls = |pairs: &[&str]| SystemConfig::parse("medreflex", pairs).unwrap().max_calls();
        assert_eq!((calls(&[]), calls(&["release_compat=on"])), (50, 55));
        assert_eq!(SystemConfig::named("medreact").unwrap().max_calls(), 11);
    }
}
