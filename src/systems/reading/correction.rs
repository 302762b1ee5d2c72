//! The sentence that a text gives as a correction, without what announces it, and that of a note which it quotes.

use super::verdict::names_error;
use super::{agreed, plain};
use crate::data::Note;
use crate::text::Pattern;

/// A correction without a label («Corrected sentence: …») and marks around it.
pub fn corrected(text: &str) -> &str {
    static LABEL: Pattern = Pattern::new(
        r"(?i)\A[\s*_>#-]*(?:sure\W+|certainly\W+)?(?:here(?:['’]s| is) )?(?:the )?(?:(?:corrected|correct|revised)(?: (?:sentence|version|text))?|sentence|correction|修改后的句子)(?: (?:is|reads|should be|should read))?[\s*_]*(?:[:：][\s*_>]*|([\x22“])|\z)",
    );
    let label = LABEL.captures(text);
    let start = label.map_or(0, |label| label.get(1).map_or(label[0].len(), |quote| quote.start()));
    let text = ["->", "→"]
        .iter()
        .fold(&text[start..], |text, arrow| text.split_once(arrow).map_or(text, |(_, new)| new));
    let text = text.trim().split("\n\n").next().unwrap_or_default();
    without_marks(text)
}

/// How a sentence ends.
const ENDS: [char; 8] = ['.', '!', '?', '。', '！', '？', '"', '”'];

/// What a text makes of this sentence of a note, without the number that the prompt gave it. `None` where it is the note's own words, whole, in
/// part, cut or beside another sentence, and where it speaks of errors.
pub fn change(text: &str, sentence_id: Option<usize>, note: &Note) -> Option<String> {
    let sentence = sentence_id.and_then(|id| note.sentences.get(id)).map_or("", String::as_str);
    let begins_so = sentence.starts_with(|c: char| c.is_ascii_digit());
    let text = if begins_so { text } else { without_marks(without_number(text)) };
    let (words, own) = (plain(text), plain(sentence));
    let is_whole = text.ends_with(ENDS) && !text.starts_with(char::is_lowercase);
    let repeats = |sentence: &String| {
        let sentence = plain(sentence);
        // Words may be left out at an end, and others be put there.
        let is_shorter = sentence.contains(&words) && !(is_whole && own.contains(&words));
        let is_longer = sentence.split_whitespace().nth(2).is_some() && words.contains(&sentence);
        sentence == words || is_shorter || is_longer && !own.contains(&sentence)
    };
    let is_change = !words.trim().is_empty() && !note.sentences.iter().any(repeats);
    (is_change && !names_error(text)).then(|| text.to_owned())
}

/// Whether a correction in this note is cut off: a grammar ends a sentence at its bound, and the reply does not tell.
pub fn is_cut_off(correction: &str, note: &Note) -> bool {
    /// Characters beyond the note's longest sentence.
    const FAR: usize = 100;
    let longest = note.sentences.iter().map(|one| one.chars().count()).max().unwrap_or(0);
    let is_ended = correction.trim_end().ends_with(ENDS) && !correction.ends_with("...");
    !is_ended && correction.chars().count() > longest + FAR
}

/// A text without the number that it begins with: «2. », «(2) », or «2 » before a capital letter; a dose is none.
pub fn without_number(text: &str) -> &str {
    let number = text.trim_start().trim_start_matches('(');
    let marked = number.trim_start_matches(|c: char| c.is_ascii_digit());
    let digits = number.len() - marked.len();
    let spaced = marked.trim_start_matches(['.', ')', ':']);
    let rest = spaced.trim_start();
    let is_sentence =
        rest.starts_with(char::is_uppercase) && rest.ends_with(['.', '!', '?', '"', '”']);
    let ends = spaced.len() < marked.len() && !rest.starts_with(|c: char| c.is_ascii_digit())
        || is_sentence;
    if (1..=3).contains(&digits) && rest.len() < spaced.len() && ends { rest } else { text }
}

/// A text without the marks or quotes around it.
pub fn without_marks(text: &str) -> &str {
    const PAIRS: [(&str, &str); 7] =
        [("**", "**"), ("*", "*"), ("`", "`"), ("\"", "\""), ("“", "”"), ("'", "'"), ("«", "»")];
    PAIRS.iter().fold(text.trim(), |text, (open, close)| {
        let inner = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
        inner.map_or(text, str::trim)
    })
}

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
    use crate::systems::scripted::note;

    #[test]
    fn what_repeats_the_note_or_speaks_of_errors_corrects_nothing() {
        let note = note();
        let all = note.sentences.join(" ");
        for said in [
            "",
            "...",
            &note.sentences[1],
            "beta blockers were given for the attack",
            "Beta blockers were given",
            "were given for the attack.",
            &note.sentences[2],
            &all,
            "Beta agonists were given for the attack. She went home.",
            "The sentence says beta blockers, which is wrong.",
        ] {
            assert_eq!(change(said, Some(1), &note), None, "{said}");
        }
        for said in [
            "Beta agonists were given for the attack.",
            "Beta agonists were given for the attack",
            "Beta blockers were given for the attack at once.",
            "Beta blockers were given.",
        ] {
            assert_eq!(change(said, Some(1), &note).as_deref(), Some(said));
        }
        let numbered = change("1 Beta agonists were given.", Some(1), &note);
        assert_eq!(numbered.as_deref(), Some("Beta agonists were given."));
        let dose = Note { sentences: vec!["2 Units of blood were given.".to_owned()], ..note };
        let changed = "2 Units of plasma were given.";
        assert_eq!(change(changed, Some(0), &dose).as_deref(), Some(changed));
        assert_eq!(corrected("The corrected sentence"), "");
    }

    #[test]
    fn a_sentence_at_a_grammars_bound_is_cut_off() {
        let note = note();
        let long = format!("Beta agonists {}", "were given and ".repeat(20));
        assert!(change(&long, Some(1), &note).is_some() && is_cut_off(&long, &note));
        assert!(is_cut_off(&format!("{long}..."), &note));
        for whole in [format!("{long} helped."), "Beta agonists were given for the".to_owned()] {
            assert!(!is_cut_off(&whole, &note), "{whole}");
        }
    }

    #[test]
    fn a_number_before_a_sentence_is_none_of_it() {
        for said in
            ["2. He had asthma.", " (2) He had asthma.", "2 He had asthma.", "12: He had asthma."]
        {
            assert_eq!(without_number(said), "He had asthma.");
        }
        for said in [
            "2 mg of it were given.",
            "20 Gy in 5 fractions",
            "5 L of oxygen",
            "12 Lead ECG",
            "1: 10 dilution",
            "110/70 mm Hg",
            "2.5 mg",
            "He had it.",
        ] {
            assert_eq!(without_number(said), said);
        }
    }

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
