//! The plain format for the user's own open questions: JSON Lines, or CSV in a file whose name ends in `.csv`.
//!
//! ```json
//! {"id": "ward-7", "question": "What is the antidote of heparin?", "answer": "Protamine sulfate."}
//! {"question": "Why is potassium low under furosemide?"}
//! ```
//!
//! | field | |
//! |---|---|
//! | `question` | required |
//! | `answer` | the answer that others are held against; a question without it is answered, and no answer to it is scored |
//! | `id` | unique in the file, a string or an integer; if missing, the record's number from 1 |
//!
//! CSV has the same names as columns. All else is as in the plain format of questions with options.

use super::row::Row;
use super::source::Source;
use super::{DataError, Draft, Question, unscored};

const FIELDS: [&str; 3] = ["id", "question", "answer"];

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let records = source.plain_rows(&FIELDS, |cells| cells)?;
    let mut notices = records.notices();
    let questions = records.numbered(question);
    notices.extend(unscored(&questions));
    Ok(Draft::new(source.stem(), &[source], questions, notices))
}

fn question(row: &Row, number: usize) -> Result<Question, DataError> {
    row.refuse_others(&FIELDS)?;
    Ok(Question {
        id: row.optional_id("id")?.unwrap_or_else(|| number.to_string()),
        question: row.text("question")?.to_owned(),
        reference: row.optional_text("answer")?.map(str::to_owned),
        ..Question::default()
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, read};
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Dataset, DataError> {
        read(Source::new(Path::new(name), text.as_bytes().to_vec())?, Format::Open)
    }

    #[test]
    fn a_question_needs_no_options_and_no_answer() {
        let lines =
            "{\"question\": \"q?\", \"answer\": \"so\"}\n{\"id\": \"b\", \"question\": \"r?\"}\n";
        let of_lines = parse("ward.jsonl", lines).unwrap();
        let of_cells = parse("ward.csv", "id,question,answer\n1,q?,so\nb,r?,\n").unwrap();
        assert_eq!(of_lines.items, of_cells.items);
        let [first, second] = of_lines.questions()[..] else { panic!("not two questions") };
        assert!(first.is_open() && first.gold.is_none());
        assert_eq!((first.id.as_str(), first.reference.as_deref()), ("1", Some("so")));
        assert_eq!((second.id.as_str(), second.reference.as_deref()), ("b", None));
        assert_eq!(of_lines.notices, ["questions without an answer, not scored: 1 of 2"]);
    }

    #[test]
    fn options_are_refused_and_so_is_an_empty_question() {
        let problem = |line: &str| parse("ward.jsonl", line).unwrap_err().to_string();
        let options = problem(r#"{"question": "q?", "options": ["x", "y"]}"#);
        assert!(options.contains("field `options` is unknown"), "{options}");
        let empty = problem(r#"{"question": " "}"#);
        assert!(empty.ends_with("field `question` is empty"), "{empty}");
    }
}
