//! What a system works on: a question to answer, or a clinical note to check.

use std::fmt;

use crate::record::{GoldLine, ItemText, Language, NoteText, QuestionText};

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

    pub fn question(&self) -> Option<&Question> {
        match self {
            Item::Question(question) => Some(question),
            Item::Note(_) => None,
        }
    }

    pub fn note(&self) -> Option<&Note> {
        match self {
            Item::Question(_) => None,
            Item::Note(note) => Some(note),
        }
    }
}

/// A line of `dataset.jsonl`.
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

/// One multiple-choice question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// Unique within its file.
    pub id: String,
    pub question: String,
    /// In the file's order; 2 to 10 of them, lettered A, B, C, … without gaps.
    pub options: Vec<Choice>,
    /// The letter of the right option; `None` where the file gives none.
    pub gold: Option<char>,
    /// Where an image belongs to the question; only a remote member can be shown one.
    pub image: Option<String>,
}

impl Question {
    pub fn letters(&self) -> impl Iterator<Item = char> {
        self.options.iter().map(|choice| choice.letter)
    }

    /// The text of the option with this letter; `None` for a letter that no option has.
    pub fn option(&self, letter: char) -> Option<&str> {
        let choice = self.options.iter().find(|choice| choice.letter == letter)?;
        Some(&choice.text)
    }
}

/// One option of a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    pub letter: char,
    pub text: String,
}

/// One clinical note.
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
