//! An item's text as it was put to the system: a question with its options, or a note with the sentences that were named marked in it.

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Serialize;

use crate::analysis::rating::marking::place;
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

/// A part of a text, with the marks on it.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    pub text: String,
    located: bool,
    gold: bool,
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

/// The text cut at both ends of the located and the gold sentence. Where it does not contain one of them word for word, the sentences are
/// shown instead, one per line.
fn segments(note: &NoteText, ids: [Option<usize>; 2]) -> Vec<Segment> {
    let ids = ids.map(|id| id.filter(|id| *id < note.sentences.len()));
    let find = |text: &str| {
        ids.map(|id| id.and_then(|id| place(text, &note.sentences[..id], &note.sentences[id])))
    };
    let places = find(&note.text);
    let all = ids.iter().zip(&places);
    if all.into_iter().all(|(id, place)| id.is_some() == place.is_some()) {
        return cut(&note.text, places);
    }
    let lines = note.sentences.join("\n");
    let places = find(&lines);
    cut(&lines, places)
}

fn cut(text: &str, places: [Option<Range<usize>>; 2]) -> Vec<Segment> {
    let mut cuts = vec![0, text.len()];
    cuts.extend(places.iter().flatten().flat_map(|one| [one.start, one.end]));
    cuts.sort_unstable();
    cuts.dedup();
    let covers = |place: &Option<Range<usize>>, start: usize| {
        place.as_ref().is_some_and(|one| one.contains(&start))
    };
    let segment = |ends: &[usize]| Segment {
        text: text[ends[0]..ends[1]].to_owned(),
        located: covers(&places[0], ends[0]),
        gold: covers(&places[1], ends[0]),
    };
    cuts.windows(2).map(segment).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::Language;

    fn marked(
        text: &str,
        sentences: &[&str],
        located: Option<usize>,
        gold: Option<usize>,
    ) -> String {
        let note = NoteText {
            item: "x".into(),
            language: Language::English,
            text: text.into(),
            sentences: sentences.iter().map(|one| one.to_string()).collect(),
            gold: None,
        };
        let segments = segments(&note, [located, gold]);
        let told = segments.iter().map(|one| match (one.located, one.gold) {
            (true, true) => format!("<{}>", one.text),
            (true, false) => format!("[{}]", one.text),
            (false, true) => format!("({})", one.text),
            (false, false) => one.text.to_owned(),
        });
        told.collect()
    }

    #[test]
    fn sentences_are_marked_where_they_stand() {
        let text = "First one. Second\n one. Last.";
        let sentences = ["First one.", "Second one.", "Last."];
        let marked = |located, gold| marked(text, &sentences, located, gold);
        assert_eq!(marked(Some(1), Some(2)), "First one. [Second\n one.] (Last.)");
        assert_eq!(marked(Some(2), Some(2)), "First one. Second\n one. <Last.>");
        assert_eq!(marked(None, None), text);
        assert_eq!(marked(Some(7), None), text, "an id that the note has not");
    }

    #[test]
    fn sentences_stand_for_a_text_that_spells_them_otherwise() {
        assert_eq!(
            marked("Fever… Well.", &["Fever.", "Well."], Some(0), Some(1)),
            "[Fever.]\n(Well.)"
        );
        assert_eq!(
            marked("发热三天。诊断肺炎。", &["发热三天。", "诊断肺炎。"], Some(1), Some(0)),
            "(发热三天。)[诊断肺炎。]"
        );
    }
}
