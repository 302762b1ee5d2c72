//! What a system works on: a question to answer, or a note to check.

use std::fmt;

use super::{Note, Question};
use crate::record::{GoldLine, ItemText, NoteText, QuestionText};

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

/// As `dataset.jsonl` keeps it.
impl From<&Item> for ItemText {
    fn from(item: &Item) -> ItemText {
        match item {
            Item::Question(question) => ItemText::Question(QuestionText {
                item: question.id.clone(),
                question: question.question.clone(),
                options: question
                    .options
                    .iter()
                    .map(|option| (option.letter, option.text.clone()))
                    .collect(),
                answer: question.gold.map(String::from),
                image: question.image.clone(),
            }),
            Item::Note(note) => ItemText::Note(NoteText {
                item: note.id.clone(),
                language: note.language,
                text: note.text.clone(),
                sentences: note.sentences.clone(),
                gold: note.gold.as_ref().map(GoldLine::from),
            }),
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
