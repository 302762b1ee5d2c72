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

    /// An open question; `None` of any other item.
    pub fn open(&self) -> Option<&QuestionText> {
        match self {
            ItemText::Question(text) if text.options.is_empty() => Some(text),
            _ => None,
        }
    }
}

/// A question, of multiple choice or open.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionText {
    pub item: String,
    pub question: String,
    /// The options by letter, in their order.
    pub options: BTreeMap<char, String>,
    /// The gold letter; `null` if the file has none.
    pub answer: Option<String>,
    /// Of an open question, which has no options: the answer that others are held against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reference: Option<String>,
    /// A file or a URL; `null` if there is none.
    pub image: Option<String>,
}

impl QuestionText {
    /// What it asks: of an answer to be judged the question and its reference, without the answer.
    pub fn asked(&self) -> &str {
        let judged = self.question.split_once(JUDGED);
        judged.map_or(&self.question, |(asked, _)| asked)
    }
}

/// What stands before the answer in the questions of judges (`prompts/judge/question`).
const JUDGED: &str = "\n\nAnswer to be judged:";

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
