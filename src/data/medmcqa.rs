//! MedMCQA, as JSON Lines: the authors' files, or rows of the Hugging Face hub's.
//!
//! A line has `id`, `question`, `opa` to `opd` and, but in the test set, `cop`, the correct option; other fields (`exp`, `choice_type`,
//! `subject_name`, `topic_name`) are ignored. The authors count `cop` from 1; the hub counts from 0, and its test set has −1. Which of the
//! two it is, a 4 or a 0 anywhere in the file says; a file with both, or with answers and neither, is refused.

use serde_json::Value;

use super::error::shown;
use super::row::Row;
use super::source::Source;
use super::{Choice, DataError, Draft, Question, unscored};

const OPTIONS: [(char, &str); 4] = [('A', "opa"), ('B', "opb"), ('C', "opc"), ('D', "opd")];

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let records = source.json_lines()?;
    let mut notices = records.notices();
    let mut first = First::default();
    for row in records.rows.iter().flatten() {
        first.learn(row);
    }
    let questions = records.rows.into_iter().map(|row| {
        let row = row?;
        let question = question(&row, first)?;
        Ok((row.place, question))
    });
    let questions: Vec<_> = questions.collect();
    notices.extend(unscored(&questions));
    Ok(Draft::new("medmcqa", &[source], questions, notices))
}

/// What says from which number a file's answers count.
#[derive(Clone, Copy, Default)]
struct First {
    has_0: bool,
    has_4: bool,
}

impl First {
    fn learn(&mut self, row: &Row) {
        match row.get("cop").and_then(Value::as_i64) {
            Some(0) => self.has_0 = true,
            Some(4) => self.has_4 = true,
            _ => {}
        }
    }

    /// The letter of an answer that a row gives.
    fn letter(self, row: &Row, answer: &Value) -> Result<Option<char>, DataError> {
        let wrong = |problem: String| Err(row.wrong("cop", problem));
        let first = match (self.has_0, self.has_4) {
            _ if answer.as_i64() == Some(-1) => return Ok(None),
            (true, false) => 0,
            (false, true) => 1,
            (true, true) => return wrong("counts from 0 in some rows and from 1 in others".into()),
            (false, false) => {
                return wrong(
                    "is 0 or 4 in no row: whether it counts from 0 or from 1 cannot be told".into(),
                );
            }
        };
        let place = answer.as_i64().and_then(|answer| usize::try_from(answer - first).ok());
        match place.and_then(|place| OPTIONS.get(place)) {
            Some((letter, _)) => Ok(Some(*letter)),
            None => wrong(format!("is {}, not one of {first} to {}", shown(answer), first + 3)),
        }
    }
}

fn question(row: &Row, first: First) -> Result<Question, DataError> {
    let id = row.optional_id("id")?.ok_or_else(|| row.wrong("id", "is missing"))?;
    let options =
        OPTIONS.map(|(letter, field)| Ok(Choice { letter, text: row.text(field)?.to_owned() }));
    Ok(Question {
        id,
        question: row.text("question")?.to_owned(),
        options: options.into_iter().collect::<Result<_, DataError>>()?,
        gold: row.get("cop").map(|answer| first.letter(row, answer)).transpose()?.flatten(),
        ..Question::default()
    })
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
        assert_eq!(
            problem(&[", \"cop\": 2", ", \"cop\": 1"]),
            "dev.json:1: field `cop` is 0 or 4 in no row: whether it counts from 0 or from 1 cannot be told"
        );
        assert_eq!(
            problem(&[", \"cop\": 0", ", \"cop\": 4"]),
            "dev.json:1: field `cop` counts from 0 in some rows and from 1 in others"
        );
        for wrong in ["5", "-2", "\"A\"", "1.5"] {
            let problem = problem(&[", \"cop\": 4", &format!(", \"cop\": {wrong}")]);
            assert!(problem.ends_with("not one of 1 to 4"), "{problem}");
        }
    }
}
