//! One line of `items.jsonl`: a system's result on a question or a note.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{AnswerLine, NoteLine};

/// The identity of an item's result.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ItemKey {
    pub dataset: String,
    pub run: u32,
    pub item: String,
}

/// One line of `items.jsonl`; its `kind` says what the item is.
#[expect(
    clippy::large_enum_variant,
    reason = "a run's lines are of one kind: a box saves nothing where they are notes"
)]
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(tag = "kind")]
pub enum ItemLine {
    #[serde(rename = "question")]
    Answer(AnswerLine),
    #[serde(rename = "note")]
    Note(NoteLine),
}

impl ItemLine {
    pub fn run(&self) -> u32 {
        let (ItemLine::Answer(AnswerLine { run, .. }) | ItemLine::Note(NoteLine { run, .. })) =
            self;
        *run
    }

    pub fn item(&self) -> &str {
        let (ItemLine::Answer(AnswerLine { item, .. }) | ItemLine::Note(NoteLine { item, .. })) =
            self;
        item
    }

    /// `None` of a note.
    pub fn answer(&self) -> Option<&AnswerLine> {
        if let ItemLine::Answer(line) = self { Some(line) } else { None }
    }

    /// `None` of a question.
    pub fn note(&self) -> Option<&NoteLine> {
        if let ItemLine::Note(line) = self { Some(line) } else { None }
    }

    /// The result in a word: a letter, or whether the note has an error; empty if there is none.
    pub fn says(&self) -> &str {
        match self {
            ItemLine::Answer(record) => &record.answer,
            ItemLine::Note(record) => record.flag.said().map_or("", flag_in_words),
        }
    }

    /// The gold result in a word.
    pub fn gold(&self) -> Option<&str> {
        match self {
            ItemLine::Answer(record) => record.gold.as_deref(),
            ItemLine::Note(record) => record.gold.as_ref().map(|gold| flag_in_words(gold.flag)),
        }
    }

    /// Whether the answer, or the flag, equals the gold one. An item that errored or has no answer is wrong; `None` without gold.
    pub fn correct(&self) -> Option<bool> {
        let is_right = match self {
            ItemLine::Answer(record) => {
                record.gold.as_ref()?;
                record.correct == Some(true)
            }
            ItemLine::Note(record) => record.flag.said() == Some(record.gold.as_ref()?.flag),
        };
        Some(is_right && self.error().is_none())
    }

    /// The confidence that the agents state in the answer or the flag.
    pub fn stated_confidence(&self) -> Option<f64> {
        match self {
            ItemLine::Answer(record) => record.stated_confidence(),
            ItemLine::Note(record) => record.stated_confidence(),
        }
    }

    /// Why the item was not finished; it counts as wrong, and a resumed run tries it again.
    pub fn error(&self) -> Option<&str> {
        let (ItemLine::Answer(AnswerLine { error, .. }) | ItemLine::Note(NoteLine { error, .. })) =
            self;
        error.as_deref()
    }
}

fn flag_in_words(has_error: bool) -> &'static str {
    if has_error { "error" } else { "no error" }
}

impl fmt::Display for ItemKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "item {} of {}, run {}", self.item, self.dataset, self.run)
    }
}
