//! MedMCQA, as JSON Lines: the authors' files, or rows of the Hugging Face hub's.
//!
//! A line has `id`, `question`, `opa` to `opd` and, but in the test set, `cop`, the correct option; other fields (`exp`, `choice_type`,
//! `subject_name`, `topic_name`) are ignored. The authors count `cop` from 1; the hub counts from 0, and its test set has −1. Which of the
//! two it is, a 4 or a 0 anywhere in the file says; a file with both, or with answers and neither, is refused.

use serde_json::Value;

use super::row::Row;
use super::source::Source;
use super::{Choice, DataError, Draft, Question};

const OPTIONS: [(char, &str); 4] = [('A', "opa"), ('B', "opb"), ('C', "opc"), ('D', "opd")];

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let rows = source.json_lines()?;
    let has = |answer: i64| rows.rows.iter().any(|row| row.get("cop") == Some(&answer.into()));
    let first = match (has(0), has(4)) {
        (true, false) => Some(0),
        (false, true) => Some(1),
        _ => None,
    };
    Draft::questions("medmcqa", source, rows, |row, _| question(row, first))
}

/// The question of a row; `first` is the number that stands for A, where the file says so.
fn question(row: &Row, first: Option<i64>) -> Result<Question, DataError> {
    let options =
        OPTIONS.map(|(letter, field)| Ok(Choice { letter, text: row.text(field)?.to_owned() }));
    let answer = row.get("cop").filter(|answer| answer.as_i64() != Some(-1));
    Ok(Question {
        id: row.id("id")?,
        question: row.text("question")?.to_owned(),
        options: options.into_iter().collect::<Result<_, DataError>>()?,
        gold: answer.map(|answer| letter(row, answer, first)).transpose()?,
        ..Question::default()
    })
}

fn letter(row: &Row, answer: &Value, first: Option<i64>) -> Result<char, DataError> {
    let Some(first) = first else {
        let problem = "is both 0 and 4 in this file, or neither: whether it counts from 0 or from 1 cannot be told";
        return Err(row.wrong("cop", problem));
    };
    let place = answer.as_i64().and_then(|answer| usize::try_from(answer - first).ok());
    let option = place.and_then(|place| OPTIONS.get(place));
    option
        .map(|(letter, _)| *letter)
        .ok_or_else(|| row.wrong("cop", format!("is not one of {first} to {}", first + 3)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, read};
    use super::*;

    /// A file of rows with these answers.
    fn parse(answers: &[&str]) -> Result<Dataset, DataError> {
        let row = |(n, answer): (usize, &&str)| {
            format!(
                "{{\"id\": \"r{n}\", \"question\": \"q\", \"opa\": \"w\", \"opb\": \"x\", \"opc\": \"y\", \"opd\": \"z\"{answer}, \"exp\": null}}\n"
            )
        };
        let text: String = answers.iter().enumerate().map(row).collect();
        read(Source::new(Path::new("dev.json"), text.into_bytes())?, Format::Medmcqa)
    }

    fn golds(answers: &[&str]) -> String {
        let dataset = parse(answers).unwrap();
        dataset.questions().iter().map(|question| question.gold.unwrap_or('-')).collect()
    }

    #[test]
    fn answers_count_from_one_as_the_authors_or_from_zero_as_the_hub() {
        assert_eq!(golds(&[", \"cop\": 4", ", \"cop\": 1", ", \"cop\": 3"]), "DAC");
        assert_eq!(golds(&[", \"cop\": 1", ", \"cop\": 0", ", \"cop\": 3"]), "BAD");
        let dataset = parse(&[""]).unwrap();
        assert_eq!((dataset.name.as_str(), dataset.questions()[0].id.as_str()), ("medmcqa", "r0"));
        assert_eq!(dataset.notices, ["questions without an answer, not scored: 1 of 1"]);
        assert_eq!(golds(&[", \"cop\": -1", ", \"cop\": -1"]), "--");
    }

    #[test]
    fn a_file_that_does_not_say_from_where_it_counts_is_refused() {
        let problem = |answers: &[&str]| parse(answers).unwrap_err().to_string();
        for answers in [[", \"cop\": 2", ", \"cop\": 1"], [", \"cop\": 0", ", \"cop\": 4"]] {
            assert_eq!(
                problem(&answers),
                "dev.json:1: field `cop` is both 0 and 4 in this file, or neither: whether it counts from 0 or from 1 cannot be told"
            );
        }
        for wrong in ["5", "-2", "\"A\"", "1.5"] {
            let problem = problem(&[", \"cop\": 4", &format!(", \"cop\": {wrong}")]);
            assert!(problem.ends_with("not one of 1 to 4"), "{problem}");
        }
    }
}
