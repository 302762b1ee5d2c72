//! Settings that every system has: the limits of completions, and whether they begin with a `<think>` section.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form;
use super::settings::{switch, whole};
use crate::data::Note;
use crate::record::Grammar;

/// Reasons may have as many times `record_chars` under the grammar: as MED-MAD's `cot` at most.
const STEPS: usize = 8;

/// Limits of completions, flattened into the settings of every system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decoding {
    /// Characters of a JSON string at most under the grammar; reasons may have eight times as many.
    #[serde(deserialize_with = "whole::<1, 2000, _, _>")]
    pub record_chars: usize,
    /// Whether the chat template asks for a `<think>` section, where it has the switch.
    #[serde(with = "switch")]
    pub thinking: bool,
    /// Tokens of a completion at most, including a `<think>` section; fewer where the context has less room.
    #[serde(deserialize_with = "whole::<1, 1_000_000, _, _>")]
    pub max_tokens: usize,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding { record_chars: 240, thinking: false, max_tokens: 4096 }
    }
}

/// The constraints on a completion, by decoding mode.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Under `DecodingMode::Grammar`.
    pub grammar: Option<Grammar>,
    /// Whether the completion is a JSON object under `DecodingMode::Json`.
    pub is_json: bool,
}

impl Shape {
    /// A JSON object of these fields.
    pub fn record(fields: Vec<(&str, Value)>) -> Shape {
        Shape::under(&form::root(fields))
    }

    /// A JSON object under a schema of [`form::root`].
    pub fn under(schema: &Value) -> Shape {
        Shape { grammar: Some(Grammar::JsonSchema(schema.to_string())), is_json: true }
    }

    /// A text that the regex matches; any text in the other decoding modes.
    pub fn regex(regex: String) -> Shape {
        Shape { grammar: Some(Grammar::Regex(regex)), is_json: false }
    }
}

impl Decoding {
    /// The schema of a string.
    pub fn string(&self) -> Value {
        form::string(self.record_chars)
    }

    /// The schema of a string with reasons.
    pub fn reasons(&self) -> Value {
        form::string(self.reason_chars())
    }

    /// Characters of a corrected sentence at most: those of the note's longest sentence and of one string.
    pub fn sentence_chars(&self, note: &Note) -> usize {
        let lengths = note.sentences.iter().map(|one| one.chars().count());
        lengths.max().unwrap_or(0) + self.record_chars
    }

    /// Prose, at most as long as reasons.
    pub fn passage(&self) -> Shape {
        Shape::regex(form::passage(self.reason_chars()))
    }

    /// Characters of reasons at most.
    pub fn reason_chars(&self) -> usize {
        STEPS * self.record_chars
    }
}
