//! What a system works on: a question to answer, or a note to check.

use std::fmt;

use super::{Note, Question};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Item {
    Question(Question),
    Note(Note),
}

impl Item {
    /// Unique within its file.
    pub fn id(&self) -> &str {
        match self {
            Item::Question(question) => &question.id,
            Item::Note(note) => &note.id,
        }
    }
}

/// What the items of a format are, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ItemKind {
    Questions,
    Notes,
}

impl fmt::Display for ItemKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ItemKind::Questions => "questions",
            ItemKind::Notes => "notes",
        })
    }
}

impl From<Question> for Item {
    fn from(question: Question) -> Item {
        Item::Question(question)
    }
}

impl From<Note> for Item {
    fn from(note: Note) -> Item {
        Item::Note(note)
    }
}
