//! Where a sentence stands in its note, so that it can be marked there.

use std::ops::Range;

/// A note's text, cut around the sentence that is marked; `marked` is empty where none is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marked {
    pub before: String,
    pub marked: String,
    pub after: String,
}

/// Marks sentence `id` in `text`. Where the text does not contain it word for word, the sentences are shown instead of the text, one per line.
pub fn mark(text: &str, sentences: &[String], id: Option<usize>) -> Marked {
    let Some((id, sentence)) = id.and_then(|id| Some((id, sentences.get(id)?))) else {
        return Marked { before: text.to_owned(), ..Marked::default() };
    };
    if let Some(range) = place(text, &sentences[..id], sentence) {
        return Marked {
            before: text[..range.start].to_owned(),
            marked: text[range.clone()].to_owned(),
            after: text[range.end..].to_owned(),
        };
    }
    let lines = |sentences: &[String]| -> String {
        let lines = sentences.iter().map(|sentence| format!("{sentence}\n"));
        lines.collect()
    };
    Marked {
        before: lines(&sentences[..id]),
        marked: sentence.clone(),
        after: format!("\n{}", lines(&sentences[id + 1..])),
    }
}

/// The first place of a sentence behind those before it: a note may say the same twice.
pub fn place(text: &str, earlier: &[String], sentence: &str) -> Option<Range<usize>> {
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

    fn marked(text: &str, sentences: &[&str], id: Option<usize>) -> [String; 3] {
        let sentences: Vec<String> = sentences.iter().map(|one| one.to_string()).collect();
        let marked = mark(text, &sentences, id);
        [marked.before, marked.marked, marked.after]
    }

    #[test]
    fn a_sentence_is_marked_where_it_stands() {
        let text = "Fever. Pulse 90.\nGive B.";
        let sentences = ["Fever.", "Pulse 90.", "Give B."];
        assert_eq!(marked(text, &sentences, Some(1)), ["Fever. ", "Pulse 90.", "\nGive B."]);
        assert_eq!(marked(text, &sentences, None), [text, "", ""]);
        assert_eq!(marked(text, &sentences, Some(3)), [text, "", ""]);
    }

    #[test]
    fn of_two_equal_sentences_the_right_one_is_marked() {
        let sentences = ["No fever.", "Well.", "No fever."];
        assert_eq!(
            marked("No fever. Well. No fever. End", &sentences, Some(2)),
            ["No fever. Well. ", "No fever.", " End"]
        );
    }

    #[test]
    fn white_space_may_differ_and_words_may_be_of_any_script() {
        assert_eq!(
            marked(
                "发烧 两天。\n\n  给予\t阿司匹林。",
                &["发烧 两天。", "给予 阿司匹林。"],
                Some(1)
            ),
            ["发烧 两天。\n\n  ", "给予\t阿司匹林。", ""]
        );
    }

    #[test]
    fn a_sentence_that_the_text_spells_otherwise_is_marked_among_the_sentences() {
        assert_eq!(
            marked("Fever… pulse 90", &["Fever.", "Pulse 90.", "Well."], Some(1)),
            ["Fever.\n", "Pulse 90.", "\nWell.\n"]
        );
        assert_eq!(marked("x", &[" "], Some(0)), ["", " ", "\n"]);
    }
}
