//! What is told to a trail, and the line that it becomes.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::experiment::link::{Link, Place};

/// Something that was done, with the text that is kept of it.
#[derive(Clone, Debug)]
pub struct Event {
    pub(super) fields: Map<String, Value>,
    pub(super) text: Option<String>,
}

/// A text of JSON that went in: its sum under the trail's key, and where texts are kept itself, byte by byte.
#[derive(Clone, Debug, Default)]
pub struct Input {
    pub(super) sum: Option<String>,
    pub(super) json: Option<String>,
}

impl Event {
    pub fn new(name: &str) -> Event {
        Event { fields: Map::from_iter([("event".to_owned(), name.into())]), text: None }
    }

    /// With a field, unless its value is null.
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Event {
        let value = value.into();
        if !value.is_null() {
            self.fields.insert(name.to_owned(), value);
        }
        self
    }

    /// With the sum of what went in; its text is kept with how it ended.
    pub fn with_input(self, input: &Input) -> Event {
        self.with("input", input.sum.as_deref())
    }
}

/// A line of a trail.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    pub seq: u64,
    pub at_utc: String,
    /// How long the machine has been up: a clock that nobody sets.
    pub up_ms: u64,
    #[serde(flatten)]
    pub fields: Map<String, Value>,
    pub prev: String,
    pub hash: String,
}

impl Line {
    /// A field; empty where it has none of this name.
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).and_then(Value::as_str).unwrap_or_default()
    }
}

impl Link for Line {
    type Key = u64;
    const FILE: &'static str = "trail.jsonl";

    fn key(&self) -> u64 {
        self.seq
    }

    /// Lines are told apart by their numbers, which have their own check.
    fn is_final(&self) -> bool {
        false
    }

    fn place(&mut self) -> Place<'_> {
        Place { seq: Some(&mut self.seq), prev: &mut self.prev, hash: &mut self.hash }
    }
}
