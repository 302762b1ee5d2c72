//! An item's text as it was put to the system: a question with its options, or a note with the sentences that were named marked in it.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::analysis::rating::marking::{Segment, segments};
use crate::record::{NoteLine, NoteText, QuestionText};

#[derive(Serialize)]
pub struct Text<'a> {
    /// Their concatenation is the text.
    pub segments: Vec<Segment>,
    /// Of a question: letter to text.
    options: Option<BTreeMap<char, &'a str>>,
    /// Where the question's image is; pages load none.
    image: Option<&'a str>,
}

impl<'a> Text<'a> {
    pub fn of_question(text: &'a QuestionText) -> Text<'a> {
        let options = text.options.iter().map(|(letter, text)| (*letter, text.as_str()));
        let stem = text.question.trim().to_owned();
        Text {
            segments: vec![Segment { text: stem, located: false, gold: false }],
            options: Some(options.collect()),
            image: text.image.as_deref(),
        }
    }

    pub fn of_note(text: &'a NoteText, note: &NoteLine) -> Text<'a> {
        let gold = note.gold.as_ref().and_then(|gold| gold.sentence_id);
        Text { segments: segments(text, [note.sentence_id, gold]), options: None, image: None }
    }

    pub fn plain(&self) -> String {
        self.segments.iter().map(|one| one.text.as_str()).collect()
    }
}
