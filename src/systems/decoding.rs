//! What the settings of every system share: how long a text may get, and whether a `<think>` section comes first.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form;
use super::settings::{switch, whole};
use crate::data::Note;
use crate::record::Grammar;

/// Where a text gives reasons, the grammar has room for so many strings of `record_chars`: as MED-MAD's `cot` at most.
const STEPS: usize = 8;

/// How the texts of a run are bounded, alike in every system; flattened into the settings of each.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decoding {
    /// Characters that the grammar allows in a string of a record; reasons have eight times as many.
    #[serde(deserialize_with = "whole::<1, 2000, _, _>")]
    pub record_chars: usize,
    /// Whether a `<think>` section is asked for, where the template knows the switch.
    #[serde(with = "switch")]
    pub thinking: bool,
    /// Tokens of a completion at most, a `<think>` section among them; fewer where the context leaves less.
    #[serde(deserialize_with = "whole::<1, 1_000_000, _, _>")]
    pub max_tokens: usize,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding { record_chars: 240, thinking: false, max_tokens: 4096 }
    }
}

/// What a text looks like.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Holds under `DecodingMode::Grammar`.
    pub grammar: Option<Grammar>,
    /// Whether it is a JSON object, which holds under `DecodingMode::Json`.
    pub is_json: bool,
}

impl Shape {
    /// A record of these fields.
    pub fn record(fields: Vec<(&str, Value)>) -> Shape {
        Shape::under(&form::root(fields))
    }

    /// A record under a schema of [`form::root`].
    pub fn under(schema: &Value) -> Shape {
        Shape { grammar: Some(Grammar::JsonSchema(schema.to_string())), is_json: true }
    }

    /// What a regex matches; any text but under a grammar.
    pub fn regex(regex: String) -> Shape {
        Shape { grammar: Some(Grammar::Regex(regex)), is_json: false }
    }
}

impl Decoding {
    /// A string of a record.
    pub fn string(&self) -> Value {
        form::string(self.record_chars)
    }

    /// A record's reasons, in one string.
    pub fn reasons(&self) -> Value {
        form::string(self.reason_chars())
    }

    /// Characters of a corrected sentence at most: those of the note's longest and of one record's string.
    pub fn sentence_chars(&self, note: &Note) -> usize {
        let lengths = note.sentences.iter().map(|one| one.chars().count());
        lengths.max().unwrap_or(0) + self.record_chars
    }

    /// Prose, as long as a record's reasons.
    pub fn passage(&self) -> Shape {
        Shape::regex(form::passage(self.reason_chars()))
    }

    /// Characters of reasons at most.
    pub fn reason_chars(&self) -> usize {
        STEPS * self.record_chars
    }
}
