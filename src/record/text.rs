//! One line of `dataset.jsonl`: an item as it was put to the system, so that a run explains itself.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{GoldLine, Language};

/// An item as it was put; its `kind` says what it is.
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

/// A multiple-choice question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionText {
    pub item: String,
    pub question: String,
    /// Letter to text; letters are in the order of the options.
    pub options: BTreeMap<char, String>,
    /// The gold letter; `null` where the file gives none.
    pub answer: Option<String>,
    /// A file or an address; `null` where there is none.
    pub image: Option<String>,
}

/// A clinical note.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NoteText {
    pub item: String,
    pub language: Language,
    /// As the file has it.
    pub text: String,
    /// Their places are their ids: 0, 1, 2, …
    pub sentences: Vec<String>,
    /// `null` where the file gives none.
    pub gold: Option<GoldLine>,
}
