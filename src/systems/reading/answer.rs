//! The letter of an answer: of a record's field and of a text by what they say; by MED-MAD's rule (App. B.2); by MedAgentBoard's own rules.

use serde_json::{Map, Value};

use super::letter::{SUPERLATIVE, announced, letter};
use super::options::{concluded, is_contradicted, whole};
use super::{json, record, said, sentences};
use crate::data::Choice;

/// The letter of a record's field, in the reply that the record stands in. Empty where the reply then announces another.
pub fn of_field(field: &str, reply: &str, options: &[Choice]) -> String {
    beside(field, letter(field, options), reply, options)
}

/// The same by MED-MAD's paper: a field that is an option's text is that option, and any other is read by App. B.2.
pub fn of_medmads_field(field: &str, reply: &str, options: &[Choice]) -> String {
    let text = whole(field, options).filter(|_| field.trim().chars().count() > 1);
    beside(field, text.or_else(|| normalise_answer(field).chars().next()), reply, options)
}

fn beside(field: &str, found: Option<char>, reply: &str, options: &[Choice]) -> String {
    let text = said(reply);
    let objects = json::objects(text);
    let after = objects.last().map_or("", |last| &text[last.place.end..]);
    let found = found.filter(|letter| {
        !is_contradicted(*letter, field, options)
            && announced(after, options).iter().all(|one| *one == Some(*letter))
            && objects.iter().all(|one| reasons(&one.object, options).all(|other| other == *letter))
    });
    found.map_or(String::new(), String::from)
}

/// The options that a record's reasons are no more than: `{"reasoning": "Heparin", "answer": "A"}` says two, and so does a lone sentence
/// that concludes another.
fn reasons(object: &Map<String, Value>, options: &[Choice]) -> impl Iterator<Item = char> {
    const REASONS: [&str; 7] =
        ["reasoning", "reason", "explanation", "rationale", "thought", "analysis", "cot"];
    let is_reason = |key: &str| REASONS.contains(&key.trim().to_lowercase().as_str());
    let texts = object.iter().filter(move |(key, _)| is_reason(key));
    texts.filter_map(|(_, value)| {
        let text = value.as_str()?;
        let is_sentence = || sentences(text).nth(1).is_none();
        whole(text, options).or_else(|| {
            concluded(text, options).filter(|_| is_sentence() && SUPERLATIVE.is_match(text))
        })
    })
}

/// Whether a reply has any letter beside the text of another option, or an answer whose reasons are another's text.
pub fn contradicts_itself(reply: &str, options: &[Choice]) -> bool {
    let text = said(reply);
    let differs = |object: &Map<String, Value>| {
        let answers = object.iter().filter(|(key, _)| key.to_lowercase().contains("answer"));
        let mut answers = answers.filter_map(|(_, value)| letter(value.as_str()?, options));
        answers.any(|answer| reasons(object, options).any(|other| other != answer))
    };
    options.iter().any(|option| is_contradicted(option.letter, text, options))
        || json::objects(text).iter().any(|found| differs(&found.object))
}

/// The letter that a reply without a record announces.
pub fn of_text(reply: &str, options: &[Choice]) -> String {
    letter(&record::prose(said(reply)), options).map_or(String::new(), String::from)
}

/// One letter A–J, or nothing (App. B.2, B.7): the first that stands alone as a word, else the last
/// anywhere, in the text's upper case.
pub fn normalise_answer(text: &str) -> String {
    let text = text.to_uppercase();
    let alone = words(&text).filter_map(|word| word.parse::<char>().ok()).find(|c| is_letter(*c));
    let letter = alone.or_else(|| text.chars().rev().find(|c| is_letter(*c)));
    letter.map_or(String::new(), String::from)
}

/// The words of a text, each of letters, digits and `_`.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

/// The letter A–J that a text such as `B`, `(b)` or `B: aspirin` begins with.
pub fn leading_letter(text: &str) -> Option<char> {
    let word = words(text.trim_start_matches(|c: char| !c.is_alphanumeric())).next()?;
    let letter: char = word.parse().ok()?;
    Some(letter.to_ascii_uppercase()).filter(|c| is_letter(*c))
}

/// The letter that MedAgentBoard's single-model baselines take from an answer of more than one character: the first of `letters` that
/// occurs in it anywhere, in either case, so that almost every sentence says A. One character stands for itself, whatever it is;
/// what gives none of A–J is empty here, and wrong there too.
pub fn harness_letter(answer: &str, letters: impl IntoIterator<Item = char>) -> String {
    if let Ok(alone) = answer.parse::<char>() {
        return String::from_iter(Some(alone).filter(|c| is_letter(*c)));
    }
    let lower = answer.to_lowercase();
    let mut letters = letters.into_iter();
    let found = letters.find(|letter| lower.contains(letter.to_ascii_lowercase()));
    String::from_iter(found)
}

/// The letter that MedAgentBoard's clean-up leaves of an answer of MDAgents: that of `(B)`, `(B) text`, `B. text` and `B) text`; empty
/// where it leaves anything but one capital letter, which MedAgentBoard then counts as wrong.
pub fn clean_letter(answer: &str) -> String {
    let answer = answer.trim();
    let letter = match answer.strip_prefix('(') {
        Some(rest) if rest.ends_with(')') => rest[..rest.len() - 1].trim(),
        Some(rest) => rest.split_once(')').map_or(answer, |(letter, _)| letter),
        None => answer.split(['.', ')']).next().unwrap_or_default(),
    };
    let is_one = letter.len() == 1 && letter.starts_with(is_letter);
    if is_one { letter.to_owned() } else { String::new() }
}

fn is_letter(c: char) -> bool {
    ('A'..='J').contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_normalised_as_in_b2() {
        let cases = [
            ("B", "B"),
            (" b ", "B"),
            ("(c)", "C"),
            ("B: aspirin", "B"),
            ("Option D.", "D"),
            // Rule (i) takes the first letter that stands alone, words such as "a" and "I" too.
            ("Not a lemon, E", "A"),
            ("I say C", "I"),
            // Rule (ii) takes the last letter of any word.
            ("ANSWERB", "B"),
            ("none", "E"),
            ("A_B", "B"),
            ("K", ""),
            ("5", ""),
            ("", ""),
            ("J", "J"),
            ("éB", "B"),
            ("b\u{301}", "B"),
        ];
        for (text, letter) in cases {
            assert_eq!(normalise_answer(text), letter, "{text:?}");
        }
    }

    /// MedQA's medqa_mc_263.
    const ARROWS: [&str; 5] = ["↑ normal normal", "↓ ↓ ↓", "↑ ↓ normal", "↓ ↑ ↑", "↓ ↑ ↓"];

    #[test]
    fn a_reply_of_nothing_is_no_vote() {
        let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
        let arrows: Vec<Choice> = ('A'..).zip(ARROWS).map(choice).collect();
        let texts = ["aspirin", "heparin", "", "", "", "", "", "", "", ""];
        let any_letter: Vec<Choice> = ('A'..).zip(texts).map(choice).collect();
        assert_eq!(of_text("↑ ↓ normal", &arrows), "C");
        for nothing in [
            "",
            "...",
            "**",
            "The answer is",
            "Answer:",
            "?!",
            "()",
            "— … —",
            "The answer is ()",
            "normal",
        ] {
            for options in [&arrows, &any_letter] {
                assert_eq!(of_text(nothing, options), "", "{nothing}");
            }
        }
        for nothing in ["", "...", "**", "?!", "()"] {
            assert_eq!(of_field(nothing, "", &any_letter), "", "{nothing}");
        }
        for said in ["↓ ↑ ↓", "The answer is ↓ ↑ ↓.", "**↓  ↑ ↓**", "E: ↓ ↑ ↓"]
        {
            assert_eq!(of_text(said, &arrows), "E", "{said}");
        }
        assert_eq!(of_field("↓ ↑ ↓", "", &arrows), "E");
        assert_eq!(of_text("F", &any_letter), "F");
        assert_eq!(of_text("The answer is aspirin", &any_letter), "A");
    }

    #[test]
    fn the_harness_takes_the_first_option_whose_letter_occurs_anywhere() {
        let cases = [
            ("B", "B"),
            // One character is not looked at again.
            ("b", ""),
            ("D", "D"),
            ("X", ""),
            ("", ""),
            ("B.", "B"),
            (" b", "B"),
            ("The answer is C", "A"),
            ("(C)", "C"),
            ("C, not B", "B"),
            ("D!", ""),
            ("Nitrofurontoin", ""),
            ("cyst", "C"),
        ];
        for (text, letter) in cases {
            assert_eq!(harness_letter(text, 'A'..='C'), letter, "{text:?}");
        }
    }

    #[test]
    fn an_option_is_the_letter_that_it_begins_with() {
        assert_eq!(leading_letter("B"), Some('B'));
        assert_eq!(leading_letter(" (b) aspirin"), Some('B'));
        assert_eq!(leading_letter("C: vitamin A"), Some('C'));
        assert_eq!(leading_letter("vitamin A"), None);
        assert_eq!(leading_letter("Aspirin"), None);
        assert_eq!(leading_letter("K"), None);
        assert_eq!(leading_letter(""), None);
    }

    #[test]
    fn a_letter_is_found_in_the_forms_that_are_known_and_in_no_other() {
        let cases = [
            ("B", "B"),
            (" (B) ", "B"),
            ("( B )", "B"),
            ("(B) aspirin", "B"),
            ("B. aspirin", "B"),
            ("B) aspirin", "B"),
            // The whole is taken for one parenthesis.
            ("(B) aspirin (oral)", ""),
            ("b", ""),
            ("B aspirin", ""),
            ("Option B", ""),
            ("B: aspirin", ""),
            ("(", ""),
            ("()", ""),
            ("(Ä", ""),
            ("K", ""),
            ("Could not parse answer.", ""),
            ("", ""),
        ];
        for (answer, letter) in cases {
            assert_eq!(clean_letter(answer), letter, "{answer:?}");
        }
    }
}
