//! MedXpertQA's texts, as JSON Lines, with ten options.
//!
//! A line has `id`, `question`, `options` (`{"A": …}`) and `label`, a letter; other fields (`medical_task`, `body_system`, `question_type`)
//! are ignored. The question ends with its options once more, behind `Answer Choices:`: they are taken off, for every system shows
//! options in its own way, and must be those of `options`. Rows with `images` are those of MedXpertQA MM.

use super::row::Row;
use super::source::Source;
use super::{Choice, DataError, Draft, Question};

/// What stands before the options in a question.
const CHOICES: &str = "Answer Choices:";

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let rows = source.json_lines()?;
    Ok(Draft::questions("medxpertqa", source, rows, |row, _| question(row)))
}

fn question(row: &Row) -> Result<Question, DataError> {
    let options = row.options("options")?;
    Ok(Question {
        id: row.id("id")?,
        question: without_options(row, &options)?.to_owned(),
        gold: Some(row.letter("label", &options)?),
        options,
        image: image(row)?,
    })
}

/// Of MedXpertQA MM: a question is asked with one image at most.
fn image(row: &Row) -> Result<Option<String>, DataError> {
    if row.get("images").is_none() {
        return Ok(None);
    }
    match &row.texts("images")?[..] {
        [name] => Ok(Some(name.clone())),
        several => {
            Err(row.wrong("images", format!("holds {} images, and one is shown", several.len())))
        }
    }
}

/// The question without the options at its end.
fn without_options<'a>(row: &'a Row, options: &[Choice]) -> Result<&'a str, DataError> {
    let whole = row.text("question")?;
    let Some((question, shown)) = whole.rsplit_once(CHOICES) else {
        return Ok(whole);
    };
    let expected: Vec<String> =
        options.iter().map(|option| format!("({}) {}", option.letter, option.text)).collect();
    if !shown.split_whitespace().eq(expected.join(" ").split_whitespace()) {
        return Err(row.wrong("question", "ends with answer choices that are not its `options`"));
    }
    Ok(question.trim_end())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, read};
    use super::*;

    const LINE: &str = r#"{"id": "Text-0", "question": "Which?\nAnswer Choices: (A) Low back  pain (B) Fever", "options": {"A": "Low back pain", "B": "Fever"}, "label": "B", "medical_task": "Diagnosis"}"#;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        read(Source::new(Path::new("test.jsonl"), text.as_bytes().to_vec())?, Format::Medxpertqa)
    }

    #[test]
    fn the_options_at_a_questions_end_are_taken_off_where_they_are_its_own() {
        let dataset = parse(LINE).unwrap();
        let question = dataset.questions()[0];
        assert_eq!((question.question.as_str(), question.gold), ("Which?", Some('B')));
        assert_eq!((question.id.as_str(), dataset.name.as_str()), ("Text-0", "medxpertqa"));
        let problem = parse(&LINE.replace("(B) Fever", "(B) Rash")).unwrap_err().to_string();
        assert_eq!(
            problem,
            "test.jsonl:1: field `question` ends with answer choices that are not its `options`"
        );
        let alone =
            parse(&LINE.replace("\\nAnswer Choices: (A) Low back  pain (B) Fever", "")).unwrap();
        assert_eq!(alone.questions()[0].question, "Which?");
    }

    #[test]
    fn a_row_with_images_says_so() {
        let line = LINE.replace("\"label\"", "\"images\": [\"MM-1-a.jpeg\"], \"label\"");
        assert_eq!(parse(&line).unwrap().questions()[0].image.as_deref(), Some("MM-1-a.jpeg"));
        let several = line.replace("[\"MM-1-a.jpeg\"]", "[\"a.jpeg\", \"b.jpeg\"]");
        let problem = parse(&several).unwrap_err().to_string();
        assert!(problem.ends_with("field `images` holds 2 images, and one is shown"), "{problem}");
        let problem = parse(&LINE.replace("\"B\", \"medical", "\"C\", \"medical")).unwrap_err();
        assert!(problem.to_string().contains("field `label` is not one of A, B"), "{problem}");
    }
}
