//! One clinical note, and what is known about the error in it.

use crate::record::{GoldLine, Language};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    /// Unique within its file.
    pub id: String,
    /// As the file has it.
    pub text: String,
    /// One at least. Their places are their ids: 0, 1, 2, …
    pub sentences: Vec<String>,
    pub language: Language,
    /// `None` where the file gives none.
    pub gold: Option<NoteGold>,
}

/// What a note is scored against.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteGold {
    /// The note's one error; `None` for a note that is right.
    pub error: Option<NoteError>,
}

impl NoteGold {
    pub fn is_wrong(&self) -> bool {
        self.error.is_some()
    }
}

impl From<&NoteGold> for GoldLine {
    fn from(gold: &NoteGold) -> GoldLine {
        let error = gold.error.as_ref();
        GoldLine {
            flag: error.is_some(),
            sentence_id: error.map(|error| error.sentence_id),
            sentence: error.map(|error| error.sentence.clone()),
            correction: error.map(|error| error.correction.clone()),
            kind: error.and_then(|error| error.kind.clone()),
            keywords: error.map_or(Vec::new(), |error| error.keywords.clone()),
        }
    }
}

/// The error of a note, by its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoteError {
    /// The id of one of the note's sentences.
    pub sentence_id: usize,
    /// The wrong sentence as its own column has it: whitespace, an apostrophe or the last full stop may differ from the
    /// note's.
    pub sentence: String,
    pub correction: String,
    /// Such as `diagnosis`, spelled as the file does.
    pub kind: Option<String>,
    /// What a correction must name.
    pub keywords: Vec<String>,
    /// Such as `Hard`.
    pub difficulty: Option<String>,
    /// Such as `Multi-hop`.
    pub reasoning: Option<String>,
}
