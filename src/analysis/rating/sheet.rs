//! What a rater sees: entries in a shuffled order, each an item and what one run made of it, under a code that does not
//! tell the run.

use serde::Serialize;

use super::marking::{Segment, segments};
use crate::data::{Item, Note};
use crate::digest::sha256;
use crate::record::{ItemLine, NoteLine};
use crate::text::spell_hidden;

/// The page's data. Nothing in it names a run, a system or a model.
#[derive(Clone, Debug, Serialize)]
pub struct Sheet {
    /// The first 16 digits of the sha256 over the entries: a rater's file says which sheet it rates.
    pub sheet: String,
    pub kind: &'static str,
    /// Whether some of it is noise of synthetic weights.
    pub synthetic: bool,
    pub entries: Vec<Entry>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    pub code: String,
    #[serde(flatten)]
    pub shown: Shown,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Shown {
    Note(NoteShown),
    Question(QuestionShown),
}

/// A note, and what was found in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NoteShown {
    pub before: String,
    /// The sentence that was located; empty where none was.
    pub marked: String,
    pub after: String,
    pub finding: &'static str,
    pub correction: Option<String>,
}

/// A question, and how it was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct QuestionShown {
    pub question: String,
    /// Where its image is; the page shows none.
    pub image: Option<String>,
    /// Letters and texts.
    pub options: Vec<(char, String)>,
    /// A letter; empty where there is none.
    pub answer: String,
    pub rationale: String,
}

impl Sheet {
    /// Entries are all of one kind.
    ///
    /// # Errors
    /// Entries that cannot be written as JSON.
    pub fn new(synthetic: bool, entries: Vec<Entry>) -> Result<Sheet, serde_json::Error> {
        let digest = sha256(serde_json::to_string(&entries)?.as_bytes());
        Ok(Sheet {
            sheet: digest[..16].to_owned(),
            kind: match entries.first().map(|entry| &entry.shown) {
                Some(Shown::Note(_)) => "notes",
                _ => "questions",
            },
            synthetic,
            entries,
        })
    }
}

impl Shown {
    /// `None` where the line is of another kind than the item, which no run writes.
    pub fn of(item: &Item, line: &ItemLine) -> Option<Shown> {
        match (item, line) {
            (Item::Note(note), ItemLine::Note(line)) => {
                Some(Shown::Note(NoteShown::of(note, line)))
            }
            (Item::Question(question), ItemLine::Answer(line)) => {
                let options = question.options.iter();
                Some(Shown::Question(QuestionShown {
                    question: spell_hidden(&question.question),
                    image: question.image.as_deref().map(spell_hidden),
                    options: options.map(|one| (one.letter, spell_hidden(&one.text))).collect(),
                    answer: spell_hidden(&line.answer),
                    rationale: spell_hidden(line.rationale.trim()),
                }))
            }
            _ => None,
        }
    }
}

impl NoteShown {
    fn of(note: &Note, record: &NoteLine) -> NoteShown {
        let located = record.sentence_id.filter(|_| record.flag.has_error());
        let segments = segments(note, [located, None]);
        let at = segments.iter().position(|one| one.located).unwrap_or(segments.len());
        let (before, rest) = segments.split_at(at);
        let (marked, after) = rest.split_at(rest.len().min(1));
        let said = |part: &[Segment]| -> String {
            part.iter().map(|one| spell_hidden(&one.text)).collect()
        };
        let correction = record.correction.as_deref().map(str::trim);
        let correction = correction.filter(|text| !text.is_empty() && record.flag.has_error());
        NoteShown {
            finding: match (record.flag.said(), marked.is_empty()) {
                (Some(false), _) => "No error found.",
                (Some(true), false) => "An error found in the marked sentence.",
                (Some(true), true) => "An error found, but no sentence named.",
                (None, _) => "No verdict that could be read.",
            },
            before: said(before),
            marked: said(marked),
            after: said(after),
            correction: correction.map(spell_hidden),
        }
    }
}
