//! Parses the item that a client sends to a system: a note, or a question as JSON or as a text whose last lines are the options.

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::data::{Item, ItemKind, json};
use crate::experiment::case;
use crate::record::Language;
use crate::serve::body::count_values;
use crate::serve::error::ApiError;

/// The field that a chat's last message is in.
const PARAM: &str = "messages";
/// The cues that evaluation harnesses append to the options.
const CUES: [&str; 2] = ["answer:", "the answer is"];
const FORMS: &str = "write the question and below it its options, a line each from `A) …` on, 2 to 10 of them; or JSON with \
                     `question` and `options`";

/// The item of a chat's last message.
pub fn item(kind: ItemKind, text: &str) -> Result<Item, ApiError> {
    match kind {
        ItemKind::Notes => note(text, None, PARAM),
        ItemKind::Questions => match text.trim_start().starts_with('{') {
            true => of_json(text),
            false => of_text(text),
        },
    }
}

/// # Errors
/// An empty text. `param` is the name of its field.
pub fn note(text: &str, language: Option<Language>, param: &str) -> Result<Item, ApiError> {
    if text.trim().is_empty() {
        return Err(ApiError::invalid(param, "the note is empty"));
    }
    case::note(text, language)
        .map_err(|error| ApiError::invalid(param, format!("the note: {}", error.problem())))
}

/// # Errors
/// An empty question; too few options, too many, or letters with gaps.
fn question(question: &str, options: &Value) -> Result<Item, ApiError> {
    case::question(question, options).map_err(|error| ApiError::invalid(PARAM, error.problem()))
}

/// A question as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    question: String,
    options: Value,
}

/// Of a question's JSON: its options are a few.
const MOST_VALUES: usize = 1000;

fn of_json(text: &str) -> Result<Item, ApiError> {
    let refuse = |what: String| ApiError::invalid(PARAM, format!("{what}; {FORMS}"));
    // More than any body may have is an error of its own.
    if count_values(text.as_bytes()).map_or(true, |values| values > MOST_VALUES) {
        return Err(refuse(format!("the question has more than {MOST_VALUES} values")));
    }
    let asked: Asked = json::read(text.as_bytes()).map_err(|_| {
        refuse("the question begins as JSON, and is no object of these two fields".to_owned())
    })?;
    question(&asked.question, &asked.options)
}

fn of_text(text: &str) -> Result<Item, ApiError> {
    let mut lines: Vec<&str> = text.lines().map(str::trim).collect();
    let is_over = |line: &&str| line.is_empty() || CUES.contains(&line.to_lowercase().as_str());
    while lines.pop_if(|line| is_over(&&**line)).is_some() {}
    let mut options: Vec<(char, &str)> = Vec::new();
    while let Some(line) = lines.pop() {
        if line.is_empty() {
            continue;
        }
        // From the last line upwards, the letters must be consecutive.
        let found = option(line).filter(|(letter, _)| match options.last() {
            None => true,
            Some((below, _)) => u32::from(*letter) + 1 == u32::from(*below),
        });
        match found {
            Some(found) => options.push(found),
            None => {
                lines.push(line);
                break;
            }
        }
        if found.is_some_and(|(letter, _)| letter == 'A') {
            break;
        }
    }
    let is_whole = options.last().is_some_and(|(letter, _)| *letter == 'A') && options.len() > 1;
    if !is_whole {
        let message = format!("the last message has no options; {FORMS}");
        return Err(ApiError::invalid(PARAM, message));
    }
    let options = options.into_iter().rev();
    let options: Map<String, Value> =
        options.map(|(letter, text)| (letter.to_string(), text.into())).collect();
    question(lines.join("\n").trim(), &options.into())
}

/// An option's letter and text: `A) …`, `A. …` or `(A) …`.
fn option(line: &str) -> Option<(char, &str)> {
    let (inner, is_wrapped) = match line.strip_prefix('(') {
        Some(inner) => (inner, true),
        None => (line, false),
    };
    let letter = inner.chars().next().filter(|letter| ('A'..='J').contains(letter))?;
    let rest = &inner[1..];
    let text = match is_wrapped {
        true => rest.strip_prefix(')'),
        false => rest.strip_prefix(')').or_else(|| rest.strip_prefix('.')),
    };
    let text = text?.trim();
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
    fn a_question_of_very_many_values_is_none() {
        for count in [MOST_VALUES, 300_000] {
            let options = "0,".repeat(count);
            let text = format!("{{\"question\": \"x\", \"options\": [{options}0]}}");
            assert!(read(&text).unwrap_err().contains("more than 1000 values"), "{count}");
        }
    }

    #[test]
    fn options_are_the_last_lines_in_each_of_their_forms() {
        let expected =
            ("Which vitamin\nis retinol?".to_owned(), vec!["A one".to_owned(), "B two".to_owned()]);
        for text in [
            "Which vitamin\nis retinol?\nA) one\nB) two",
            "Which vitamin\nis retinol?\n\n A. one\n\nB. two\n\nAnswer:\n",
            "Which vitamin\nis retinol?\r\n(A) one\r\n(B) two\r\n",
            r#"{"question": "Which vitamin\nis retinol?", "options": {"A": "one", "B": "two"}}"#,
            r#" {"question": "Which vitamin\nis retinol?", "options": ["one", "two"]}"#,
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
        assert_eq!(id("Q?\nA) one\nB) two"), id(r#"{"question":"Q?","options":["one","two"]}"#));
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
            r#"{"question": "Q?"}"#,
            r#"{"question": "Q?", "options": ["one"]}"#,
            r#"{"question": "Q?", "options": ["a", "b"], "answer": "A"}"#,
            "{not json",
            r#"{"question": "Q?", "options": ["a", "b"], "options": ["a", "c"]}"#,
        ] {
            let error = item(ItemKind::Questions, text).unwrap_err();
            assert_eq!(
                (error.code, error.param.as_deref()),
                (Code::InvalidValue, Some("messages")),
                "{text}"
            );
        }
        assert!(item(ItemKind::Notes, " ").is_err());
        assert_eq!(item(ItemKind::Notes, "Well.").unwrap().note().unwrap().sentences, ["Well."]);
    }
}
