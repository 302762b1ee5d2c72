//! MedAgentBoard's clean-up of an answer: the letter of `(B)`, `(B) text`, `B. text` and `B) text`.

use crate::systems::answer::is_letter;

/// The one capital letter that the clean-up leaves; empty where it leaves anything else, which MedAgentBoard then counts as wrong.
pub fn clean_letter(answer: &str) -> String {
    let answer = answer.trim();
    let mut characters = answer.chars();
    let (first, second, third) = (characters.next(), characters.next(), characters.next());
    let cleaned = match (first, second, third) {
        (Some('('), _, _) if answer.ends_with(')') => answer[1..answer.len() - 1].trim().to_owned(),
        (Some('('), Some(letter), Some(')')) => letter.to_string(),
        (Some(letter), Some('.' | ')'), _) if letter.is_alphabetic() => letter.to_string(),
        _ => answer.to_owned(),
    };
    let mut left = cleaned.chars();
    match (left.next(), left.next()) {
        (Some(letter), None) if is_letter(letter) => cleaned,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
