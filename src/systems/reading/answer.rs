//! The letter of an answer: of a record's field and of a text by what they say; by MED-MAD's rule (App. B.2); by MedAgentBoard's own rules.

use serde_json::{Map, Value};

use super::letter::{announced, letter};
use super::options::{in_field, is_contradicted};
use super::{agreed, json, record, said};
use crate::data::Choice;
use crate::record::Parse;

/// The letter of a record's field, and how it was read of a record that was read so: an option's text in the place of its letter is
/// repaired. Nothing where the reply then announces another, or its reasons do.
pub fn of_field(field: &str, reply: &str, options: &[Choice], parse: Parse) -> (String, Parse) {
    let text = said(reply);
    let objects = json::objects(text);
    let after = objects.last().map_or("", |last| &text[last.place.end..]);
    let given = announced(field, options);
    let meant = || in_field(field, options).filter(|_| given.is_empty());
    let found = letter(field, options).or_else(meant).filter(|letter| {
        announced(after, options).iter().all(|one| *one == Some(*letter))
            && !objects.iter().any(|one| argues_otherwise(&one.object, *letter, options))
    });
    let is_letter = |found: &str| words(&field.to_uppercase()).any(|word| word == found);
    let found = found.map_or(String::new(), String::from);
    let parse = if parse == Parse::Ok && !is_letter(&found) { Parse::Repaired } else { parse };
    let parse = parse.if_read(!found.is_empty());
    (found, parse)
}

/// Whether an object's reasons announce another option, or have a letter beside the text of one that it is not; a character is no reason.
fn argues_otherwise(object: &Map<String, Value>, answer: char, options: &[Choice]) -> bool {
    let reasons = object.iter().filter(|(key, _)| record::is_reasons(key));
    let reasons = reasons.filter_map(|(_, value)| value.as_str());
    reasons.filter(|text| text.trim().len() > 1).any(|text| {
        let announced = agreed(announced(text, options).into_iter()).flatten();
        announced.is_some_and(|other| other != answer) || is_contradicted(answer, text, options)
    })
}

/// Whether a reply has any letter beside the text of another option, or an answer whose reasons are another's.
pub fn contradicts_itself(reply: &str, options: &[Choice]) -> bool {
    let text = said(reply);
    let is_other = |object: &Map<String, Value>| {
        let answers = object.iter().filter(|(key, _)| key.to_lowercase().contains("answer"));
        let mut answers = answers.filter_map(|(_, value)| letter(value.as_str()?, options));
        answers.any(|answer| argues_otherwise(object, answer, options))
    };
    options.iter().any(|option| is_contradicted(option.letter, text, options))
        || json::objects(text).iter().any(|found| is_other(&found.object))
}

/// The letter that a reply without a record announces.
pub fn of_text(reply: &str, options: &[Choice]) -> (String, Parse) {
    let found = letter(&record::prose(said(reply)), options).map_or(String::new(), String::from);
    let parse = Parse::Fallback.if_read(!found.is_empty());
    (found, parse)
}

/// One letter A–J, or nothing (App. B.2, B.7): the first that stands alone as a word, else the last anywhere, in the text's upper case.
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

    fn options(texts: &[&str]) -> Vec<Choice> {
        let choice = |(letter, text): (char, &&str)| Choice { letter, text: (*text).to_owned() };
        ('A'..='J').zip(texts).map(choice).collect()
    }

    #[test]
    fn a_record_whose_reasons_say_another_option_has_no_answer() {
        let options = options(&["Aspirin", "Heparin", "Vitamin K", "Warfarin"]);
        let letter = |reply: &str| {
            let object: Value = serde_json::from_str(reply).unwrap();
            of_field(object["answer"].as_str().unwrap(), reply, &options, Parse::Ok).0
        };
        for said in [
            r#"{"reasoning": "1. Heparin", "answer": "A"}"#,
            r#"{"explanation": "C: Vitamin K", "answer": "B"}"#,
            r#"{"explanation": "C: Heparin", "answer": "C"}"#,
            r#"{"thought": "Option B - Heparin", "answer": "C"}"#,
            r#"{"answer": "B", "reasoning": "C. Vitamin K, since the INR is high."}"#,
            r#"{"answer": "1. B: Aspirin"}"#,
        ] {
            assert_eq!(letter(said), "", "{said}");
            assert!(contradicts_itself(said, &options), "{said}");
        }
        assert_eq!(letter(r#"{"answer": "C: Vitamin K. This answer is option D"}"#), "");
        for said in [
            r#"{"reasoning": "1. Heparin", "answer": "B"}"#,
            r#"{"explanation": "B: Heparin", "answer": "B"}"#,
            r#"{"answer": "B", "reason": "1. Aspirin is weak. 2. Heparin stops the clot."}"#,
        ] {
            assert_eq!(letter(said), "B", "{said}");
        }
    }

    #[test]
    fn the_text_of_one_option_in_a_field_is_that_option_and_repaired() {
        let options =
            options(&["Continue methimazole", "10 mg", "Add steroids", "Add propranolol"]);
        let read = |field: &str| of_field(field, "", &options, Parse::Ok);
        for field in
            ["Add propranolol", "I would add propranolol", "Add propranolol to the regimen."]
        {
            assert_eq!(read(field), ("D".to_owned(), Parse::Repaired), "{field}");
        }
        for field in ["D", "(d)", "D) Add propranolol", "Add propranolol (D)"] {
            assert_eq!(read(field), ("D".to_owned(), Parse::Ok), "{field}");
        }
        for field in [
            "Never add propranolol",
            "Add propranolol or add steroids",
            "Add propranolol (C)",
            "110 mg",
            "None",
        ] {
            assert_eq!(read(field), (String::new(), Parse::Unread), "{field}");
        }
    }

    #[test]
    fn of_yes_no_and_maybe_a_list_is_no_answer() {
        let options = options(&["Yes", "No", "Maybe"]);
        for said in [
            "Yes, No, Maybe",
            "Yes, no or maybe",
            "Yes. No.",
            "A: No answer can be found.",
            "Yes: no",
            "A: Yes, B: No",
        ] {
            assert_eq!(of_text(said, &options).0, "", "{said}");
        }
        for said in
            ["No, the trial found nothing.", "The answer is no.", "B: No, as it found nothing"]
        {
            assert_eq!(of_text(said, &options).0, "B", "{said}");
        }
    }

    /// MedQA's medqa_mc_263.
    const ARROWS: [&str; 5] = ["↑ normal normal", "↓ ↓ ↓", "↑ ↓ normal", "↓ ↑ ↑", "↓ ↑ ↓"];

    #[test]
    fn a_reply_of_nothing_is_no_vote() {
        let arrows = options(&ARROWS);
        let any_letter = options(&["aspirin", "heparin", "", "", "", "", "", "", "", ""]);
        assert_eq!(of_text("↑ ↓ normal", &arrows).0, "C");
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
                assert_eq!(of_text(nothing, options).0, "", "{nothing}");
            }
        }
        for nothing in ["", "...", "**", "?!", "()"] {
            assert_eq!(of_field(nothing, "", &any_letter, Parse::Ok).0, "", "{nothing}");
        }
        for said in ["↓ ↑ ↓", "The answer is ↓ ↑ ↓.", "**↓  ↑ ↓**", "E: ↓ ↑ ↓"]
        {
            assert_eq!(of_text(said, &arrows).0, "E", "{said}");
        }
        assert_eq!(of_field("↓ ↑ ↓", "", &arrows, Parse::Ok).0, "E");
        assert_eq!(of_text("F", &any_letter).0, "F");
        assert_eq!(of_text("The answer is aspirin", &any_letter).0, "A");
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
}
