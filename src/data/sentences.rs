//! Splits a note into sentences at their numbers.

use std::cmp::Reverse;
use std::collections::HashSet;

use itertools::Itertools;

/// Characters that may precede the number of the next sentence.
const PUNCTUATION: &str = ".!?:;)\"”。！？：；）،؛؟";

/// The score of a number after punctuation, or of one that the text without numbers lacks.
const CLEAR: u32 = 10;
/// The score of a number at the beginning of a line.
const LINE: u32 = 5;
/// The score of a number between whitespace.
const LIKELY: u32 = 2;
/// A line break as some published rows write it out.
pub(super) const ESCAPED: &str = "\\n";
/// The score of a number that lacks whitespace on one side, as in `ago.1 He` and `، 3و`.
const JOINED: u32 = 1;

/// The sentences of a text that numbers them 0, 1, 2, …: the first stands between `0` and `1`, and so on. Empty if the
/// text does not begin with `0`.
///
/// `plain` is the same text without the numbers, or empty if it is not available.
///
/// If a line begins with `1`, every number begins a line, and a line without the next number belongs to the sentence before.
/// Otherwise the numbers stand within the text, where `type 2 diabetes` and lists of laboratory values have numbers too. Behind each number,
/// of all that are the next one, the one with the highest score is chosen. A number that `plain` has at the same place is part of the
/// sentence.
pub(super) fn numbered<'a>(text: &'a str, plain: &str) -> Vec<&'a str> {
    // The replacement has the same length, so that offsets stay valid.
    let [spelt, plain] = [text, plain].map(|text| text.replace(ESCAPED, " \n"));
    let mut marks = marks(&spelt, &pairs(&plain));
    let begins_line = |mark: &Mark| {
        let before = text[..mark.start].trim_end_matches([' ', '\t']);
        (before.is_empty() || before.ends_with('\n')) && text[mark.end..].starts_with([' ', '\t'])
    };
    let in_lines = marks.iter().any(|mark| mark.number == 1 && begins_line(mark));
    marks.retain(|mark| if in_lines { begins_line(mark) } else { mark.score > 0 });
    let places = chain(&marks);
    let is_whole = places.first().is_some_and(|(start, _)| text[..*start].trim().is_empty());
    if !is_whole {
        return Vec::new();
    }
    let ends = places.iter().skip(1).map(|(start, _)| *start);
    let ends = ends.chain([text.len()]);
    let sentences = places.iter().zip(ends);
    sentences.map(|((_, from), to)| without_blanks_after(text[*from..to].trim())).collect()
}

/// Whether one of the numbers stands within a sentence too, where `plain`, the text without numbers, has the words around it and not the number.
pub(super) fn has_a_number_twice(sentences: &[&str], plain: &str) -> bool {
    let [plain, all] = [plain, &sentences.join(" ")].map(|text| text.replace(ESCAPED, " \n"));
    let pairs = pairs(&plain);
    all.split_whitespace().tuple_windows().any(|(before, number, after)| {
        number.bytes().all(|byte| byte.is_ascii_digit())
            && number.parse().is_ok_and(|number: usize| number < sentences.len())
            && pairs.contains(&(before, after))
            && !pairs.contains(&(before, number))
    })
}

/// The sentences of a text that numbers them; of any other text those that `otherwise` returns. No text without numbers is at hand to compare
/// with: each number must begin a line or follow punctuation and count nothing, as in «0 pain. 1 tablet a day. 2 L of oxygen.», and a 0 alone
/// must precede one sentence.
pub(super) fn numbered_or(text: &str, otherwise: fn(&str) -> Vec<&str>) -> Vec<&str> {
    let sentences = numbered(text, "");
    let follows_end = |sentence: &&str| {
        let before = &text[..sentence.as_ptr() as usize - text.as_ptr() as usize];
        let before = before.trim_end().trim_end_matches(|c: char| c.is_ascii_digit());
        let line = before.trim_end_matches([' ', '\t']);
        line.ends_with('\n') || before.trim_end().ends_with(is_punctuation)
    };
    let counts = |sentence: &&str| {
        let first = sentence.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
        let is_small = !first.is_empty() && first.chars().all(char::is_lowercase);
        is_small || ["L", "IU", "U", "Gy"].contains(&first)
    };
    let is_numbered = !sentences.iter().any(counts)
        && match &sentences[..] {
            [] => false,
            [only] => otherwise(only).len() == 1,
            [_, others @ ..] => others.iter().all(follows_end),
        };
    if is_numbered { sentences } else { otherwise(text) }
}

/// The trimmed lines of a text, without blank ones.
pub(super) fn lines(text: &str) -> Vec<&str> {
    let lines = text.lines().map(str::trim);
    lines.filter(|line| !line.is_empty()).collect()
}

/// A number in a text.
struct Mark {
    number: usize,
    start: usize,
    end: usize,
    score: u32,
}

type Pairs<'a> = HashSet<(&'a str, &'a str)>;

/// The pairs of adjacent words of a text.
fn pairs(text: &str) -> Pairs<'_> {
    text.split_whitespace().zip(text.split_whitespace().skip(1)).collect()
}

/// Every number, in the order of the text.
fn marks(text: &str, plain: &Pairs<'_>) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut from = 0;
    while let Some(offset) = text[from..].find(|c: char| c.is_ascii_digit()) {
        let start = from + offset;
        let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
        from = start + digits;
        let word = &text[start..from];
        let is_spelt_so = word == "0" || !word.starts_with('0');
        if let (true, Ok(number)) = (is_spelt_so, word.parse()) {
            let score = score(&text[..start], word, &text[from..], plain);
            marks.push(Mark { number, start, end: from, score });
        }
    }
    marks
}

/// The score of a number between these two texts: how clearly it begins a sentence; 0 if it does not.
fn score(before: &str, number: &str, after: &str, plain: &Pairs<'_>) -> u32 {
    let follows_blank = before.is_empty() || before.ends_with(char::is_whitespace);
    let precedes_blank = after.starts_with(char::is_whitespace);
    let word_before = before.trim_end();
    let follows_punctuation = word_before.is_empty() || word_before.ends_with(is_punctuation);
    // Only numbers at the edge of a word are looked up, so that each word is read once.
    let (last, next) = match follows_blank || precedes_blank {
        true => (word_before.rsplit(char::is_whitespace).next(), after.split_whitespace().next()),
        false => (None, None),
    };
    let (last, next) = (last.unwrap_or_default(), next.unwrap_or_default());
    let is_added = plain.contains(&(last, next));
    if follows_blank && precedes_blank {
        let begins_line = before.trim_end_matches([' ', '\t']).ends_with('\n');
        let is_text = plain.contains(&(last, number)) && plain.contains(&(number, next));
        return match (is_added, is_text) {
            (false, true) => 0,
            (true, false) => CLEAR,
            _ if follows_punctuation => CLEAR,
            _ if begins_line => LINE,
            _ => LIKELY,
        };
    }
    // If whitespace is missing on one side, the text without numbers tells.
    if is_added {
        return CLEAR;
    }
    // Decimals, as in 7.1, do not count.
    let mut last_two = before.chars().rev();
    let joins_before = last_two.next().is_some_and(is_punctuation)
        && last_two.next().is_some_and(|c| !c.is_numeric() && !c.is_whitespace());
    let joins_after = after.starts_with(char::is_alphabetic);
    let is_joined = (joins_before && (precedes_blank || joins_after))
        || (follows_blank && joins_after && follows_punctuation && !before.is_empty());
    if is_joined { JOINED } else { 0 }
}

fn without_blanks_after(text: &str) -> &str {
    let mut rest = text.trim_end();
    while let Some(shorter) = rest.strip_suffix(ESCAPED) {
        rest = shorter.trim_end();
    }
    rest
}

/// The numbers 0, 1, 2, … from the first mark on, each with its start and end: behind a number, of the next ones the one with the highest
/// score, and of equal ones the first.
fn chain(marks: &[Mark]) -> Vec<(usize, usize)> {
    let by_number = marks.iter().into_group_map_by(|mark| mark.number);
    let mut places = Vec::new();
    let mut next = marks.first().filter(|mark| mark.number == 0);
    while let Some(mark) = next {
        places.push((mark.start, mark.end));
        let same = by_number.get(&places.len()).into_iter().flatten();
        let behind = same.filter(|other| other.start >= mark.end);
        next = behind.min_by_key(|other| (Reverse(other.score), other.start)).copied();
    }
    places
}

fn is_punctuation(c: char) -> bool {
    PUNCTUATION.contains(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_begin_lines_where_one_does() {
        let text = "0 He took 1 tablet.\r\n1 BP is\r\n2 120/80 mm\r\nand so on.\r\n3 Done.\r\n";
        assert_eq!(
            numbered(text, ""),
            ["He took 1 tablet.", "BP is", "120/80 mm\r\nand so on.", "Done."]
        );
        let out_of_order = "0 a.\n2 b.\n1 c.\n2 d.";
        assert_eq!(numbered(out_of_order, ""), ["a.\n2 b.", "c.", "d."]);
        assert_eq!(numbered("  0 a\n 1\tb", ""), ["a", "b"]);
    }

    #[test]
    fn numbers_between_blanks_are_preferred_after_punctuation() {
        let text =
            "0 He has type 1 diabetes. 1 He takes 2 tablets. 2 BP 120/80 3 He is 4 feet tall";
        let sentences = numbered(text, "");
        assert_eq!(sentences[..3], ["He has type 1 diabetes.", "He takes 2 tablets.", "BP 120/80"]);
        // Nothing says that this 4 is none.
        assert_eq!(sentences[3..], ["He is", "feet tall"]);
    }

    #[test]
    fn a_number_that_misses_a_blank_is_found() {
        assert_eq!(
            numbered("0 Ten days ago.1 He is 2.2 m tall. 2 So.", ""),
            ["Ten days ago.", "He is 2.2 m tall.", "So."]
        );
        assert_eq!(numbered("0 كبيرة،1 إلا", ""), ["كبيرة،", "إلا"]);
        assert_eq!(numbered("0 a. 1 +4،  2ويظهر", ""), ["a.", "+4،", "ويظهر"]);
        assert_eq!(numbered("0 pH is 7.1 now", ""), ["pH is 7.1 now"]);
    }

    #[test]
    fn a_list_of_laboratory_values_is_read_through() {
        let values: Vec<String> =
            (10..=24).map(|number| format!("{number} Value {} mg/dL", number / 2)).collect();
        let lead: Vec<String> = (1..=8).map(|number| format!("{number} So it is.")).collect();
        // A 9 after a colon comes after the true 10, and one in the list before it.
        let text = format!(
            "0 He has 9 pills. {} 9 Tests show {} last seen: 9 days ago",
            lead.join(" "),
            values.join(" ")
        );
        let sentences = numbered(&text, "");
        assert_eq!(sentences.len(), 25, "{sentences:?}");
        assert_eq!(sentences[9], "Tests show");
        assert_eq!(sentences[24], "Value 12 mg/dL last seen: 9 days ago");
    }

    #[test]
    fn what_the_text_without_numbers_has_begins_no_sentence() {
        let plain = "He has type 1 diabetes, grade: 2 by some. BP 120/80 He is 3 feet tall.";
        let text = "0 He has type 1 diabetes, grade: 2 by some. 1 BP 120/80 2 He is 3 feet tall.";
        assert_eq!(
            numbered(text, plain),
            ["He has type 1 diabetes, grade: 2 by some.", "BP 120/80", "He is 3 feet tall."]
        );
    }

    #[test]
    fn a_number_after_a_line_break_that_is_spelt_out_is_found() {
        let text = r"0 He is ill. 1 Tests show:\n2 Hb 3 g/dL\n3 Na 140\n 4 Rest.\n";
        assert_eq!(
            numbered(text, ""),
            ["He is ill.", "Tests show:", "Hb 3 g/dL", "Na 140", "Rest."]
        );
    }

    #[test]
    fn a_number_that_sticks_to_a_word_is_found_by_the_text_without_numbers() {
        let plain = "Hb 13 g/dL Na 140 mmol/L K 4 now.";
        let text = "0 Hb 13 g/dL1 Na 140 mmol/L 2K 4 now.";
        assert_eq!(numbered(text, plain), ["Hb 13 g/dL", "Na 140 mmol/L", "K 4 now."]);
        assert_eq!(numbered(text, ""), [text.trim_start_matches("0 ")]);
    }

    #[test]
    fn many_numbers_are_read_in_little_time() {
        let text: Vec<String> = (0..100_000).map(|number| number.to_string()).collect();
        assert_eq!(numbered(&text.join(" "), "").len(), 99_999);
        assert_eq!(numbered(&"0 1 ".repeat(100_000), "").len(), 2);
        assert_eq!(numbered(&format!("0 {}", "1a".repeat(100_000)), "a a").len(), 1);
        assert_eq!(numbered(&r"0\n1\n".repeat(100_000), "a a").len(), 2);
    }

    #[test]
    fn text_that_does_not_begin_with_0_is_not_numbered() {
        for text in ["", "1 a", "Seen 0 times. 1 More.", "10 a", "0"] {
            assert!(numbered(text, "").is_empty(), "{text:?}");
        }
        assert_eq!(numbered("0 a", ""), ["a"]);
    }

    #[test]
    fn numbers_within_sentences_number_none() {
        let one = |text| numbered_or(text, |text| vec![text]);
        for text in [
            "0 pain today. She eats well. She sleeps.",
            "0 of 10 pain. He has 1 child. He has 2 dogs. Fine.",
            "0 pain today",
            "0 pain reported today. 1 tablet of aspirin daily. 2 refills left.",
            "0 falls since May.\n1 tablet of aspirin daily.\n2 refills left.",
            "0 Gy so far. 1 L of oxygen. 2 U of insulin.",
        ] {
            assert_eq!(one(text), [text]);
        }
        assert_eq!(one("0 He has a fever."), ["He has a fever."]);
        assert_eq!(one("0 He has a fever. 1 pH was 7.3."), ["He has a fever.", "pH was 7.3."]);
        assert_eq!(
            one("0 He has a fever\n1 He takes nothing"),
            ["He has a fever", "He takes nothing"]
        );
    }
}
