//! Parses the item that a client sends to a system: a note, or a question, whose last lines are the options.

use crate::data::{Choice, Item, ItemKind};
use crate::experiment::case;
use crate::serve::error::ApiError;

/// The field that a chat's last message is in.
const PARAM: &str = "messages";
/// The cues that evaluation harnesses append to the options.
const CUES: [&str; 2] = ["answer:", "the answer is"];
const FORM: &str =
    "write the question and below it its options, a line each from `A) …` on, 2 to 10 of them";

/// The item of a chat's last message.
pub fn item(kind: ItemKind, text: &str) -> Result<Item, ApiError> {
    match kind {
        ItemKind::Notes => note(text, PARAM),
        ItemKind::Questions => question(text),
    }
}

/// # Errors
/// An empty text. `param` is the name of its field.
pub fn note(text: &str, param: &str) -> Result<Item, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid(param, "the note is empty"));
    }
    Ok(case::note(text))
}

/// # Errors
/// An empty question; too few options, too many, or letters with gaps.
fn question(text: &str) -> Result<Item, ApiError> {
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_over = |line: &&str| line.is_empty() || CUES.contains(&line.to_lowercase().as_str());
    while lines.pop_if(|line| is_over(&&**line)).is_some() {}
    // A list in the question itself is none of its options.
    let is_first = |line: &&str| option(line).is_some_and(|(letter, _)| letter == 'A');
    let first = lines.iter().rposition(is_first).unwrap_or(lines.len());
    let (asked, below) = lines.split_at(first);
    let below = below.iter().filter(|line| !line.is_empty()).zip('A'..);
    let options = below.map(|(line, wanted)| {
        let (letter, text) = option(line).filter(|(letter, _)| *letter == wanted)?;
        Some(Choice { letter, text: text.to_owned() })
    });
    let options: Option<Vec<Choice>> = options.collect();
    let options = options.filter(|options| options.len() > 1).ok_or_else(|| {
        ApiError::invalid(PARAM, format!("the last message has no options; {FORM}"))
    })?;
    let asked = asked.join("\n");
    match asked.trim() {
        "" => Err(ApiError::invalid(PARAM, "the question is empty")),
        asked => Ok(case::question(asked, options)),
    }
}

/// An option's letter and text: `A) …`, `A. …` or `(A) …`.
fn option(line: &str) -> Option<(char, &str)> {
    let (inner, ends) = line.strip_prefix('(').map_or((line, ")."), |inner| (inner, ")"));
    let mut characters = inner.chars();
    let letter = characters.next().filter(|letter| ('A'..='J').contains(letter))?;
    characters.next().filter(|end| ends.contains(*end))?;
    let text = characters.as_str().trim();
    (!text.is_empty()).then_some((letter, text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::error::Code;

    fn read(text: &str) -> Result<(String, Vec<String>), String> {
        let item = item(ItemKind::Questions, text).map_err(|error| error.message)?;
        let question = item.question().unwrap();
        let options = question.options.iter();
        let options = options.map(|choice| format!("{} {}", choice.letter, choice.text));
        Ok((question.question.clone(), options.collect()))
    }

    #[test]
    fn options_are_the_last_lines_in_each_of_their_forms() {
        let expected =
            ("Which vitamin\nis retinol?".to_owned(), vec!["A one".to_owned(), "B two".to_owned()]);
        for text in [
            "Which vitamin\nis retinol?\nA) one\nB) two",
            "Which vitamin\nis retinol?\n\n A. one\n\nB. two\n\nAnswer:\n",
            "Which vitamin\nis retinol?\r\n(A) one\r\n(B) two\r\n",
        ] {
            assert_eq!(read(text).unwrap(), expected, "{text}");
        }
        // A list in the question itself is no list of options.
        let (question, options) =
            read("A) Fever.\nB) Cough.\nWhich first?\nA) both\nB) none").unwrap();
        assert_eq!(question, "A) Fever.\nB) Cough.\nWhich first?");
        assert_eq!(options, ["A both", "B none"]);
        // The same question is the same item, however it was written.
        let id = |text| item(ItemKind::Questions, text).unwrap().id().to_owned();
        assert_eq!(id("Q?\nA) one\nB) two"), id("Q?\n\n(A) one\n(B) two\n"));
    }

    #[test]
    fn what_is_no_question_is_refused_in_one_way() {
        for text in [
            "Which vitamin is retinol?",
            "Q?\nA) one",
            "Q?\nB) one\nC) two",
            "Q?\nA) one\nC) two",
            "A) one\nB) two",
            "Q?\nA)\nB) two",
            "",
            "{not json",
        ] {
            let error = item(ItemKind::Questions, text).unwrap_err();
            assert_eq!(
                (error.code, error.param.as_deref()),
                (Code::INVALID_VALUE, Some("messages")),
                "{text}"
            );
        }
        assert!(item(ItemKind::Notes, " ").is_err());
        assert_eq!(item(ItemKind::Notes, "Well.").unwrap().note().unwrap().sentences, ["Well."]);
    }
}
