//! Where sentences stand in their note, so that they can be marked there.

use std::ops::Range;

use serde::Serialize;

use crate::data::Note;

/// A part of a text, with the marks on it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    pub text: String,
    pub located: bool,
    pub gold: bool,
}

/// The text cut at both ends of the located and the gold sentence. Where it does not contain one of them word for word, the sentences are
/// shown instead, one per line.
pub fn segments(note: &Note, ids: [Option<usize>; 2]) -> Vec<Segment> {
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

/// The first place of a sentence behind those before it: a note may say the same twice.
fn place(text: &str, earlier: &[String], sentence: &str) -> Option<Range<usize>> {
    let mut from = 0;
    for sentence in earlier {
        if let Some(range) = find(text, sentence, from) {
            from = range.end;
        }
    }
    find(text, sentence, from).or_else(|| find(text, sentence, 0))
}

/// The first occurrence of the sentence's words from `from` on, with any white space between them.
fn find(text: &str, sentence: &str, from: usize) -> Option<Range<usize>> {
    let mut words = sentence.split_whitespace();
    let first = words.next()?;
    let rest: Vec<&str> = words.collect();
    let starts = text[from..].match_indices(first);
    starts.map(|(start, _)| start + from).find_map(|start| {
        let mut end = start + first.len();
        for word in &rest {
            let behind = text[end..].trim_start();
            end = text.len() - behind.strip_prefix(word)?.len();
        }
        Some(start..end)
    })
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
        let note = Note {
            id: "x".into(),
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

    #[test]
    fn of_two_equal_sentences_the_right_one_is_marked() {
        let sentences = ["No fever.", "Well.", "No fever."];
        let text = "No fever. Well. No fever. End";
        assert_eq!(marked(text, &sentences, Some(2), None), "No fever. Well. [No fever.] End");
    }

    #[test]
    fn white_space_may_differ_and_words_may_be_of_any_script() {
        let text = "发烧 两天。\n\n  给予\t阿司匹林。";
        let told = marked(text, &["发烧 两天。", "给予 阿司匹林。"], Some(1), None);
        assert_eq!(told, "发烧 两天。\n\n  [给予\t阿司匹林。]");
    }
}
