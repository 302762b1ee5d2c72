//! One line of `dataset.jsonl`: an item as the system was given it, so that a run directory is self-contained.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{GoldLine, Language};

/// An item as the system was given it; `kind` tells questions from notes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind")]
pub enum ItemText {
    #[serde(rename = "question")]
    Question(QuestionText),
    #[serde(rename = "note")]
    Note(NoteText),
}

impl ItemText {
    /// The item's id, unique within its file.
    pub fn item(&self) -> &str {
        match self {
            ItemText::Question(text) => &text.item,
            ItemText::Note(text) => &text.item,
        }
    }
}

/// A question of multiple choice.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionText {
    pub item: String,
    pub question: String,
    /// The options by letter, in their order.
    pub options: BTreeMap<char, String>,
    /// The gold letter; `null` if the file has none.
    pub answer: Option<String>,
    /// Of a question without options, which earlier versions asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// A file or a URL; `null` if there is none.
    pub image: Option<String>,
}

/// A clinical note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteText {
    pub item: String,
    pub language: Language,
    /// The text as in the file.
    pub text: String,
    /// A sentence's id is its index.
    pub sentences: Vec<String>,
    /// `null` if the file has none.
    pub gold: Option<GoldLine>,
}
