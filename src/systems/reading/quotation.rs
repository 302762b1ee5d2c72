//! The sentence of a note that words are quoted from as they stand.

use super::{agreed, plain};

/// Words of a quotation that is a part of a sentence: fewer may stand anywhere.
const FEWEST: usize = 3;

/// The only sentence that these words are a part of.
pub fn quoted(sentences: &[String], words: &str) -> Option<usize> {
    let words = plain(words);
    if word_count(&words) < FEWEST {
        return None;
    }
    // Whole words, but where none end.
    let words = if words.contains(is_unspaced) { words.trim() } else { &words };
    let found =
        sentences.iter().enumerate().filter(|(_, sentence)| plain(sentence).contains(words));
    agreed(found.map(|(id, _)| id))
}

/// Words of a text; where nothing stands between them, two characters are one.
pub fn word_count(text: &str) -> usize {
    let count = |word: &str| (word.chars().filter(|c| is_unspaced(*c)).count() / 2).max(1);
    text.split_whitespace().map(count).sum()
}

/// Whether a character is of a script that puts nothing between words.
fn is_unspaced(c: char) -> bool {
    ('\u{3400}'..='\u{9fff}').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quotation_is_of_the_only_sentence_that_has_it() {
        let sentences = [
            "She is diagnosed with asthma after the test.",
            "She is told to come back after a week.",
            "患者被诊断为慢性肾病,开始使用药物。",
        ]
        .map(String::from);
        for (words, id) in [
            ("is diagnosed with asthma", Some(0)),
            ("… Diagnosed with Asthma, after …", Some(0)),
            ("诊断为慢性肾病", Some(2)),
            // Of two; too few; not whole words; other words.
            ("She is told", Some(1)),
            ("She is", None),
            ("with asthma", None),
            ("is diagnosed with asth", None),
            ("is treated for asthma", None),
            ("肾病", None),
            ("", None),
        ] {
            assert_eq!(quoted(&sentences, words), id, "{words}");
        }
        assert_eq!(quoted(&["a b c d".to_owned(), "x a b c".to_owned()], "a b c"), None);
    }

    #[test]
    fn two_characters_without_spaces_are_a_word() {
        for (text, count) in [("", 0), ("6 words", 2), ("尽早使用皮质类固醇激素。", 5), ("肺", 1)]
        {
            assert_eq!(word_count(text), count, "{text}");
        }
    }
}
