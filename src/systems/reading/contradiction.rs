//! The letter of one option beside the text of another, which says both and so neither: «A: No», where A is yes.

use super::said;
use super::standing::whole;
use crate::data::Choice;

/// Whether a text has this letter somewhere beside the text of another option.
pub fn is_contradicted(letter: char, text: &str, options: &[Choice]) -> bool {
    let mut places = text.match_indices(letter).map(|(at, _)| at);
    places.any(|at| {
        let stands_alone = !text[..at].ends_with(char::is_alphanumeric);
        stands_alone && named_after(&text[at + 1..], options).is_some_and(|other| other != letter)
    })
}

/// Whether a reply has any letter beside the text of another option.
pub fn contradicts_itself(reply: &str, options: &[Choice]) -> bool {
    let text = said(reply);
    options.iter().any(|option| is_contradicted(option.letter, text, options))
}

/// The option whose text follows a letter and a mark, such as a colon.
fn named_after(after: &str, options: &[Choice]) -> Option<char> {
    let after = after.trim_start_matches([' ', '*', '_', '"', '\'']);
    let after = after.strip_prefix([':', ')', '.', ']', '=', '-', '–', '—'])?;
    let line = after.lines().next()?;
    let parts = [line].into_iter().chain(['.', '(', ';', ','].iter().filter_map(|end| {
        let (part, _) = line.split_once(*end)?;
        Some(part)
    }));
    parts.filter_map(|part| whole(part, options)).map(|option| option.letter).next()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::systems::reading::answer::{of_field, of_text};

    fn yes_no_maybe() -> Vec<Choice> {
        let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
        ('A'..).zip(["Yes", "No", "Maybe"]).map(choice).collect()
    }

    #[test]
    fn the_letter_of_one_option_with_the_text_of_another_is_no_answer() {
        let options = yes_no_maybe();
        for said in
            ["A: No", "A. No", "(A) No", "**A**: No.", "The answer is A: No", "A: No, it is not"]
        {
            assert_eq!(of_text(said, &options), "", "{said}");
            assert!(contradicts_itself(said, &options), "{said}");
        }
        for field in ["A: No", "A) No", "(A) No, since"] {
            assert_eq!(of_field(field, "", &options), "", "{field}");
        }
        for said in ["A: Yes", "A. Yes, it is", "A", "The answer is A: Yes. B: No is wrong"] {
            assert_eq!(of_text(said, &options), "A", "{said}");
            assert!(!contradicts_itself(said, &options), "{said}");
        }
        assert_eq!(of_field("A: since nothing else fits", "", &options), "A");
    }
}
