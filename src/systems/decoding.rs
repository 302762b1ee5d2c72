//! Settings that every system has: the limits of completions, and whether they begin with a `<think>` section.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use super::form;
use super::settings::{settings, spelled, whole};
use crate::data::Note;
use crate::diagnosis::Failure;
use crate::record::Grammar;

/// Reasons may have as many times `record_chars` under the grammar: as MED-MAD's `cot` at most.
const STEPS: usize = 8;

/// Tokens of a completion at most, where nothing else is set.
pub const MAX_TOKENS: usize = 4096;

/// A value that leaves a parameter to the endpoint.
const PROVIDER: &str = "provider";

/// Whether a model thinks before it answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Thinking {
    #[default]
    Off,
    On,
    /// On for models whose chat template has the switch; the others of the panel answer as they do.
    WherePossible,
    /// As the endpoint has it: it is sent no word of it.
    Provider,
}

impl Thinking {
    /// What the chat template or the endpoint is told; `None` where it is told nothing.
    pub fn told(self) -> Option<bool> {
        match self {
            Thinking::Off => Some(false),
            Thinking::On | Thinking::WherePossible => Some(true),
            Thinking::Provider => None,
        }
    }

    pub fn is_on(self) -> bool {
        matches!(self, Thinking::On | Thinking::WherePossible)
    }
}

/// The random seed of a call to an endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallSeed {
    /// It is sent the one that the call's key gives.
    #[default]
    Sent,
    /// It is sent none, and draws its own.
    Provider,
}

settings! {
    /// Limits of completions, flattened into the settings of every system.
    pub struct Decoding {
        /// Characters of a JSON string at most under the grammar; reasons may have eight times as many.
        #[serde(deserialize_with = "whole::<1, 2000, _, _>")]
        pub record_chars: usize = 240,
        /// Whether the chat template asks for a `<think>` section, where it has the switch.
        pub thinking: Thinking = Thinking::Off,
        /// Tokens of a completion at most, including a `<think>` section; fewer where the context has less room. `None`: as many as the
        /// endpoint gives, which is sent no limit; a local model has the rest of its context.
        #[serde(with = "max_tokens")]
        pub max_tokens: Option<usize> = Some(MAX_TOKENS),
        /// Whether endpoints are sent a seed.
        pub call_seed: CallSeed = CallSeed::Sent,
        /// How a question's options are ordered before any agent sees them.
        pub option_order: OptionOrder = OptionOrder::File,
    }
}

/// The order of a question's options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OptionOrder {
    /// As in the file.
    #[default]
    File,
    /// Drawn for each item from the run's seed, so that no letter is right more often than another by the file's making.
    Permuted,
}

/// A number, or `provider`.
mod max_tokens {
    use super::*;

    pub fn serialize<S: Serializer>(limit: &Option<usize>, to: S) -> Result<S::Ok, S::Error> {
        match limit {
            Some(tokens) => tokens.serialize(to),
            None => PROVIDER.serialize(to),
        }
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(value: D) -> Result<Option<usize>, D::Error> {
        let spelled = spelled(value)?;
        if spelled == PROVIDER {
            return Ok(None);
        }
        let tokens = spelled.parse().ok().filter(|tokens| (1..=1_000_000).contains(tokens));
        let expected =
            || D::Error::custom("expected a whole number from 1 to 1000000, or provider");
        tokens.map(Some).ok_or_else(expected)
    }
}

impl Decoding {
    /// A local member, where thinking is left to the endpoint: its template would think or not as its authors chose, unsaid. One that is
    /// to think and whose chat template has no switch for it.
    pub fn check_local(&self, agent: &str, lets_think: bool) -> Result<(), Failure> {
        match self.thinking {
            Thinking::On if !lets_think => Err(Failure::usage(
                format!(
                    "thinking=on, and the chat template of {agent}'s model has no switch for it"
                ),
                "leave thinking off, take a model whose template has enable_thinking, such as Qwen3, or set thinking=where-possible",
            )),
            Thinking::Provider => Err(Failure::usage(
                format!(
                    "thinking=provider leaves thinking to an endpoint, and {agent} is a local model"
                ),
                "set thinking=on or thinking=off",
            )),
            _ => Ok(()),
        }
    }

    pub fn string(&self) -> Value {
        form::string(self.record_chars)
    }

    pub fn reasons(&self) -> Value {
        form::string(self.reason_chars())
    }

    /// Characters of a corrected sentence at most: those of the note's longest sentence and of one string.
    pub fn sentence_chars(&self, note: &Note) -> usize {
        let lengths = note.sentences.iter().map(|one| one.chars().count());
        lengths.max().unwrap_or(0) + self.record_chars
    }

    /// Prose, at most as long as reasons.
    pub fn passage(&self) -> Grammar {
        Grammar::Regex(form::passage(self.reason_chars()))
    }

    pub fn reason_chars(&self) -> usize {
        STEPS * self.record_chars
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::SystemConfig;

    #[test]
    fn what_is_left_to_the_provider_is_a_setting_like_any_other() {
        let given = ["thinking=provider", "max_tokens=provider", "call_seed=provider"];
        let config = SystemConfig::parse("medmad", &given).unwrap();
        let expected = Decoding {
            thinking: Thinking::Provider,
            max_tokens: None,
            call_seed: CallSeed::Provider,
            ..Decoding::default()
        };
        assert_eq!(config.decoding, expected);
        assert_eq!(SystemConfig::with(config.entry, &config.table).unwrap(), config);
        assert!(config.decoding.check_local("sym", true).is_err());
        let on = Decoding { thinking: Thinking::On, ..Decoding::default() };
        assert!(on.check_local("sym", false).is_err() && on.check_local("sym", true).is_ok());
        assert!(Decoding::default().check_local("sym", false).is_ok());
    }
}
