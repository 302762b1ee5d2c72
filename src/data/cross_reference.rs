//! Whether an option speaks of others by their letters or places, so that it means something else in another order.
//!
//! In doubt it does: a question that stays in its order is none the worse.

use crate::text::Pattern;

/// An option that begins so speaks of others whatever follows, and one that has these words anywhere.
static OTHERS: Pattern = Pattern::new(
    r"(?ix) ^ \s* [^\s\w]* (?:all|none|both|neither) [^\s\w]* (?:\s|$) | ^ same\ as
    | the\ above | of\ these | of\ the\ (?:following|options|choices|other) | above\ are | none\ is\ correct | of\ above",
);
/// The words between letters or numbers where an option names others.
const JOINING: &str = "and or both neither nor either only option options are is correct incorrect true false right wrong statement statements choice choices answer answers not but";

pub(super) fn speaks_of_others(text: &str) -> bool {
    OTHERS.is_match(text) || names_letters(text) || names_places(&text.to_lowercase())
}

/// A letter from A to J by itself, such as `(b)`, `Vitamin D`. Not an article, and no part of a unit, a genus or a compound (`5 g`, `E. coli`,
/// `B-cell`).
fn names_letters(text: &str) -> bool {
    let is_mark = |c: char| !c.is_alphanumeric();
    let mut before = ("", "");
    let mut rest = text.trim_start_matches(is_mark);
    while !rest.is_empty() {
        let (word, after) = rest.split_at(rest.find(is_mark).unwrap_or(rest.len()));
        let next = after.trim_start_matches(is_mark);
        let gap = &after[..after.len() - next.len()];
        let next_word = next.split(is_mark).next().unwrap_or_default();
        let (last, last_gap) = before;
        let joins = |gap: &str, other: &str| {
            matches!(gap, "." | "-" | "'" | "’") || (gap == "/" && !is_letter(other))
        };
        let is_article = word.eq_ignore_ascii_case("a")
            && gap.chars().all(char::is_whitespace)
            && next_word.len() > 1
            && !joins_others(&next_word.to_lowercase());
        let is_genus = gap == ". " && next_word.len() > 1 && next.starts_with(char::is_lowercase);
        let is_unit = !last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit());
        let is_part = (!next.is_empty() && joins(gap, next_word)) || joins(last_gap, last);
        if is_letter(word) && !is_article && !is_genus && !is_unit && !is_part {
            return true;
        }
        (before, rest) = ((word, gap), next);
    }
    false
}

/// Numbers alone, and what joins them, such as `1 and 2 are correct`. One number alone is a value.
fn names_places(lower: &str) -> bool {
    let words = lower.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    let words: Vec<&str> = words.collect();
    let is_place = |word: &str| word.parse().is_ok_and(|place: u8| (1..=10).contains(&place));
    words.len() > 1
        && words.iter().any(|word| is_place(word))
        && words.iter().all(|word| is_place(word) || joins_others(word))
}

fn joins_others(word: &str) -> bool {
    JOINING.split(' ').any(|joining| joining == word)
}

fn is_letter(word: &str) -> bool {
    matches!(word.as_bytes(), [b'A'..=b'J' | b'a'..=b'j'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_name_others_are_known_by_their_words_letters_and_places() {
        for text in [
            "None of the above",
            "All of these",
            "A and C",
            "Both B & C",
            "A, B and C only",
            "A and C are correct",
            "Both (a) and (b)",
            "Same as A",
            "1 and 2 are correct",
            "Only 1 is true",
            "(1), (3)",
            "All the above",
            "None of above",
            "Both",
            "Neither",
            "None.",
            "a is false",
            "A",
            "b) but not c)",
            "A/B",
            // In doubt.
            "Vitamin D",
        ] {
            assert!(speaks_of_others(text), "{text}");
        }
    }

    #[test]
    fn ordinary_options_speak_of_themselves() {
        for text in [
            "A beta blocker",
            "Give a diuretic",
            "E. coli",
            "C.difficile toxin, e.g. B-cell lymphoma",
            "D-dimer",
            "5 g daily, 2 h apart, 3 mg/d",
            "2",
            "10 mg",
            "1 or 2 days",
            "Allopurinol",
            "Bothrops venom",
            "",
        ] {
            assert!(!speaks_of_others(text), "{text}");
        }
    }
}
