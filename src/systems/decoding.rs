//! What the settings of every system share: how long a text may get, and whether a `<think>` section comes first.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::form;
use super::settings::{switch, tokens, whole};
use crate::record::Grammar;

/// How the texts of a run are bounded; flattened into the settings of every system.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Decoding {
    /// Characters that the grammar allows in a string of a record, and in a passage.
    #[serde(deserialize_with = "whole::<1, 2000, _, _>")]
    pub record_chars: usize,
    /// Whether a `<think>` section is asked for, where the template knows the switch.
    #[serde(with = "switch")]
    pub thinking: bool,
    /// Tokens of a completion at most; `None` (`auto`): what each kind of call needs at worst, or, with `thinking`, what the context
    /// leaves.
    #[serde(with = "tokens")]
    pub max_tokens: Option<usize>,
}

impl Default for Decoding {
    fn default() -> Decoding {
        Decoding { record_chars: 240, thinking: false, max_tokens: None }
    }
}

/// What a text looks like, and how long it may get.
#[derive(Clone, Debug)]
pub struct Shape {
    /// Holds unless the panel is free.
    pub grammar: Option<Grammar>,
    pub max_tokens: Option<usize>,
}

impl Decoding {
    /// A string of a record.
    pub fn string(&self) -> Value {
        form::string(self.record_chars)
    }

    /// A record of these fields.
    pub fn record(&self, fields: Vec<(&str, Value)>) -> Shape {
        self.under(&form::root(fields))
    }

    /// A record under a schema of [`form::root`], as long as it can get: no tokenizer needs more tokens than bytes.
    pub fn under(&self, schema: &Value) -> Shape {
        let grammar = Grammar::JsonSchema(schema.to_string());
        self.within(Some(grammar), form::longest(schema))
    }

    /// Prose.
    pub fn passage(&self) -> Shape {
        let longest = form::MAX_CHAR_BYTES * self.record_chars;
        self.within(form::passage(self.record_chars), longest)
    }

    /// A text under this grammar of at most so many tokens, unless the settings say otherwise; nobody knows how long a `<think>` section
    /// before it gets.
    pub fn within(&self, grammar: Option<Grammar>, tokens: usize) -> Shape {
        let max_tokens = self.max_tokens.or((!self.thinking).then_some(tokens));
        Shape { grammar, max_tokens }
    }
}
