//! Whether the columns of a note contradict each other: `Sentences` and `Text`, an error's sentence and the one of its id.

use std::collections::HashSet;

use super::error::shortened;
use super::sentences::{ESCAPED, is_punctuation};
use super::{DataError, Note, Place, notice};

/// What annotators lose where they copy, beside blanks and what ends a sentence.
const MARKS: &str = "'’‘`\"“”,，،、…";

/// Whether two texts are the same but for blanks and marks. A mark between two digits counts, as in `1.5`.
pub(super) fn is_same(one: &str, other: &str) -> bool {
    kept(one) == kept(other)
}

fn kept(text: &str) -> Vec<char> {
    let text: Vec<char> = text.replace(ESCAPED, " ").chars().collect();
    let is_digit =
        |at: Option<usize>| at.and_then(|at| text.get(at)).is_some_and(char::is_ascii_digit);
    let is_kept = |at: usize, letter: char| {
        let is_mark = is_punctuation(letter) || MARKS.contains(letter);
        let is_within_number = is_digit(at.checked_sub(1)) && is_digit(Some(at + 1));
        !letter.is_whitespace() && (!is_mark || is_within_number)
    };
    let letters = text.iter().copied().enumerate();
    letters.filter(|(at, letter)| is_kept(*at, *letter)).map(|(_, letter)| letter).collect()
}

/// A number of these sentences that comes again inside one of them, at the beginning of a line or behind the end of a sentence, where `plain`,
/// the text without numbers, has none.
pub(super) fn number_twice(sentences: &[&str], plain: &str) -> Option<usize> {
    if is_same(plain, &sentences.join(" ")) {
        return None;
    }
    let plain = plain.replace(ESCAPED, " \n");
    let words = plain.split_whitespace();
    let pairs: HashSet<(&str, &str)> = words.clone().zip(words.skip(1)).collect();
    for sentence in sentences {
        let sentence = sentence.replace(ESCAPED, " \n");
        let mut last: Option<&str> = None;
        for line in sentence.lines() {
            for (place, word) in line.split_whitespace().enumerate() {
                if let Some(before) = last
                    && word.bytes().all(|byte| byte.is_ascii_digit())
                    && let Ok(number) = word.parse::<usize>()
                    && number < sentences.len()
                    && (place == 0 || before.ends_with(is_punctuation))
                    && !pairs.contains(&(before, word))
                {
                    return Some(number);
                }
                last = Some(word);
            }
        }
    }
    None
}

/// How many notes contradict themselves and were read all the same, as some of the published ones do.
pub(super) fn notices(notes: &[Result<(Place, Note), DataError>]) -> Vec<String> {
    let read: Vec<&Note> = notes.iter().flatten().map(|(_, note)| note).collect();
    let is_other = |note: &&&Note| !is_same(&note.text, &note.sentences.join(" "));
    let others: Vec<&str> = read.iter().filter(is_other).map(|note| note.id.as_str()).collect();
    let (mut errors, mut strangers) = (0, Vec::new());
    for note in &read {
        let Some(error) = note.gold.as_ref().and_then(|gold| gold.error.as_ref()) else {
            continue;
        };
        errors += 1;
        if !is_same(&error.sentence, &note.sentences[error.sentence_id]) {
            strangers.push(note.id.as_str());
        }
    }
    let told = |what: &str, ids: &[&str], total: usize| {
        let first = ids.first()?;
        notice(&format!("{what}, the first {}", shortened(first)), ids.len(), total)
    };
    let of_texts = told("notes whose sentences are others than their text's", &others, read.len());
    let of_errors = told("errors in another wording than their sentence's", &strangers, errors);
    of_texts.into_iter().chain(of_errors).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_and_marks_make_no_difference_and_marks_of_numbers_do() {
        for (one, other) in [
            ("The patient's BP is\n 120/80 mm Hg.", "The patients BP is 120/80 mm Hg"),
            ("He took 1.5 mg.", "He took 1.5 mg ."),
            ("发热，咳嗽。", "发热咳嗽"),
            ("a\\nb", "a b"),
        ] {
            assert!(is_same(one, other), "{one} {other}");
        }
        for (one, other) in [
            ("He took 1.5 mg.", "He took 15 mg."),
            ("pH < 7.1", "pH > 7.1"),
            ("He is well.", "He is ill."),
            ("He is well.", "he is well."),
        ] {
            assert!(!is_same(one, other), "{one} {other}");
        }
    }

    #[test]
    fn a_number_that_comes_twice_is_found_where_the_text_has_none() {
        let twice = |sentences: &[&str], plain: &str| number_twice(sentences, plain);
        assert_eq!(twice(&["A b.", "C d.\n1 E f.", "G."], "A b. C d. E f. G."), Some(1));
        assert_eq!(twice(&["A b. 0 C d.", "E f."], "A b. C d. E f."), Some(0));
        // A number of the text itself; one that numbers no sentence; no difference at all.
        assert_eq!(twice(&["A b. 1 pill a day.", "C."], "A b. 1 pill a day. D."), None);
        assert_eq!(twice(&["A b. 7 C d.", "E f."], "A b. C d. E f."), None);
        assert_eq!(twice(&["A b is", "7 mm", "Hg.\n1 C."], "A b is 7 mm Hg. 1 C."), None);
    }
}
