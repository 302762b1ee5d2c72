//! MedXpertQA's texts, as JSON Lines, with ten options.
//!
//! A line has `id`, `question`, `options` (`{"A": …}`) and `label`, a letter; other fields (`medical_task`, `body_system`, `question_type`)
//! are ignored. The question ends with its options once more, behind `Answer Choices:`: they are taken off, for every system shows
//! options in its own way.

use super::row::Row;
use super::source::Source;
use super::{DataError, Dataset, Question};

/// What stands before the options in a question.
const CHOICES: &str = "Answer Choices:";

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let rows = source.json_lines()?;
    Dataset::of_questions("medxpertqa", source, rows, |row, _| question(row))
}

fn question(row: &Row) -> Result<Question, DataError> {
    if row.get("images").is_some() {
        return Err(row.wrong("images", "is of MedXpertQA MM, and its texts are read"));
    }
    let options = row.options("options")?;
    let whole = row.text("question")?;
    Ok(Question {
        id: row.id("id")?,
        question: whole
            .rsplit_once(CHOICES)
            .map_or(whole, |(asked, _)| asked.trim_end())
            .to_owned(),
        gold: Some(row.letter("label", &options)?),
        options,
        ..Question::default()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::Format;
    use super::*;

    const LINE: &str = r#"{"id": "Text-0", "question": "Which?\nAnswer Choices: (A) Low back  pain (B) Fever", "options": {"A": "Low back pain", "B": "Fever"}, "label": "B", "medical_task": "Diagnosis"}"#;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        Format::Medxpertqa.read(&Source::new(Path::new("test.jsonl"), text.as_bytes().to_vec())?)
    }

    #[test]
    fn the_options_at_a_questions_end_are_taken_off() {
        let dataset = parse(LINE).unwrap();
        let question = dataset.questions()[0];
        assert_eq!((question.question.as_str(), question.gold), ("Which?", Some('B')));
        assert_eq!((question.id.as_str(), dataset.name.as_str()), ("Text-0", "medxpertqa"));
        let alone =
            parse(&LINE.replace("\\nAnswer Choices: (A) Low back  pain (B) Fever", "")).unwrap();
        assert_eq!(alone.questions()[0].question, "Which?");
    }

    #[test]
    fn a_row_with_images_and_a_label_that_is_no_option_are_refused() {
        let problem = |line: String| parse(&line).unwrap_err().to_string();
        let images = LINE.replace("\"label\"", "\"images\": [\"MM-1-a.jpeg\"], \"label\"");
        assert!(problem(images).contains("field `images` is of MedXpertQA MM"));
        let label = LINE.replace("\"B\", \"medical", "\"C\", \"medical");
        assert!(problem(label).contains("field `label` is not one of A, B"));
    }
}
