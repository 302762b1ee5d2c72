//! The plain format for questions of your own: JSON Lines, or CSV in a file whose name ends in `.csv`.
//!
//! One question a line:
//!
//! ```json
//! {"id": "ward-7", "question": "Which vitamin is retinol?", "options": {"A": "Vitamin A", "B": "Vitamin D"}, "answer": "A"}
//! {"question": "Which of these is a bone of the leg?", "options": ["Ulna", "Tibia", "Clavicle"]}
//! ```
//!
//! The same in CSV, where a line break inside a quoted cell is part of it:
//!
//! ```csv
//! id,question,A,B,C,answer,image
//! ward-7,Which vitamin is retinol?,Vitamin A,Vitamin D,,A,
//! ,Which of these is a bone of the leg?,Ulna,Tibia,Clavicle,,
//! ```
//!
//! | field | |
//! |---|---|
//! | `question` | required |
//! | `options` | required: 2 to 10, a list, or an object whose keys are the letters from A on; in CSV the columns `A`, `B`, …, with empty cells only after the last option |
//! | `answer` | the letter of the right option; where it is missing the question is answered but not scored |
//! | `id` | unique in the file, a string or an integer; where it is missing, the record's number from 1 |
//! | `image` | an address or a path, kept as it is written |
//!
//! Files are UTF-8, with or without a byte order mark, with either line end. A missing field may also be `null`, in CSV
//! an empty cell or no column at all. Any other field is refused: it may be a misspelt one.

use super::error::is_csv;
use super::row::Row;
use super::source::{self, Source};
use super::{DataError, Draft, Question, items, mcq_csv};

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let records = if is_csv(&source.path) {
        mcq_csv::rows(source)?
    } else {
        source.rows()?
    };
    let mut questions = Vec::new();
    for (number, row) in (1_usize..).zip(&records.rows) {
        questions.push((row.place.clone(), question(row, number)?));
    }
    let mut notices = records.notices();
    let unscored = questions
        .iter()
        .filter(|(_, question)| question.gold.is_none())
        .count();
    if unscored > 0 {
        notices.push(format!(
            "questions without an answer, not scored: {unscored} of {}",
            questions.len()
        ));
    }
    let name = source
        .path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    Ok(Draft {
        name,
        sha256: source::sha256(&[source]),
        items: items(questions),
        notices,
    })
}

fn question(row: &Row, number: usize) -> Result<Question, DataError> {
    row.refuse_others(&["id", "question", "options", "answer", "image"])?;
    let options = row.options("options")?;
    Ok(Question {
        id: row.optional_id("id")?.unwrap_or_else(|| number.to_string()),
        question: row.text("question")?.to_owned(),
        gold: row
            .get("answer")
            .map(|_| row.letter("answer", &options))
            .transpose()?,
        image: row.optional_text("image")?.map(str::to_owned),
        options,
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, demo, read};
    use super::*;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        read(
            Source::new(Path::new("ward.jsonl"), text.as_bytes().to_vec())?,
            Format::Mcq,
        )
    }

    /// What is wrong with a file whose third line this is.
    fn problem(line: &str) -> String {
        let before = r#"{"question": "q", "options": ["x", "y"]}"#;
        parse(&format!("{before}\n\n{line}\n"))
            .unwrap_err()
            .to_string()
    }

    #[test]
    fn reads_the_documented_example() {
        let text = include_str!("mcq.rs");
        let lines: Vec<&str> = text
            .lines()
            .filter_map(|line| line.strip_prefix("//! {"))
            .collect();
        let dataset = parse(
            &lines
                .iter()
                .map(|line| format!("{{{line}\r\n"))
                .collect::<String>(),
        )
        .unwrap();
        assert_eq!(dataset.name, "ward");
        assert_eq!(dataset.questions().len(), 2);
        let [first, second] = [dataset.questions()[0], dataset.questions()[1]];
        assert_eq!(
            (first.id.as_str(), first.gold, first.option('B')),
            ("ward-7", Some('A'), Some("Vitamin D"))
        );
        assert_eq!(
            (second.id.as_str(), second.gold, second.option('C')),
            ("2", None, Some("Clavicle"))
        );
        assert_eq!(
            dataset.notices,
            ["questions without an answer, not scored: 1 of 2"]
        );
    }

    #[test]
    fn accepts_every_field_and_options_in_any_order() {
        let line = r#"{"id": 17, "question": "q", "options": {"B": "y", "A": "x"}, "answer": null, "image": "scan.png"}"#;
        let dataset = parse(&format!("\u{feff}{line}")).unwrap();
        let question = dataset.questions()[0];
        assert_eq!(question.letters().collect::<String>(), "AB");
        assert_eq!(
            (question.id.as_str(), question.image.as_deref()),
            ("17", Some("scan.png"))
        );
        let ten = r#"{"question": "q", "options": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "answer": "J"}"#;
        assert_eq!(parse(ten).unwrap().questions()[0].gold, Some('J'));
    }

    #[test]
    fn refuses_bad_rows_with_line_and_field() {
        let cases = [
            (r#"{"options": ["x", "y"]}"#, "`question` is missing"),
            (
                r#"{"question": " ", "options": ["x", "y"]}"#,
                "`question` is empty",
            ),
            (
                r#"{"question": 1, "options": ["x", "y"]}"#,
                "`question` must be a string, not a number",
            ),
            (r#"{"question": "q"}"#, "`options` is missing"),
            (
                r#"{"question": "q", "options": "x"}"#,
                "`options` must be an object or a list, not a string",
            ),
            (
                r#"{"question": "q", "options": ["x"]}"#,
                "`options` must hold 2 to 10 options, not 1",
            ),
            (
                r#"{"question": "q", "options": [0,1,2,3,4,5,6,7,8,9,10]}"#,
                "`options` must hold 2 to 10 options, not 11",
            ),
            (
                r#"{"question": "q", "options": ["x", ""]}"#,
                "`options.B` is empty",
            ),
            (
                r#"{"question": "q", "options": {"A": "x", "C": "y"}}"#,
                "`options` has an option \"C\" where B is due",
            ),
            (
                r#"{"question": "q", "options": {"a": "x", "b": "y"}}"#,
                "`options` has an option \"a\" where A is due",
            ),
            (
                r#"{"question": "q", "options": ["x", "y"], "answer": "C"}"#,
                "`answer` is \"C\", not one of A, B",
            ),
            (
                r#"{"question": "q", "options": ["x", "y"], "answer": "AB"}"#,
                "`answer` is \"AB\", not one of A, B",
            ),
            (
                r#"{"question": "q", "options": ["x", "y"], "answer": 0}"#,
                "`answer` must be a string, not a number",
            ),
            (
                r##"{"question": "q", "options": ["x", "y"], "id": "#1"}"##,
                "`id` is \"#1\": no spaces around an id, no # before it, no control characters in it",
            ),
            (
                r#"{"question": "q", "options": ["x", "y"], "awnser": "A"}"#,
                "`awnser` is unknown; the fields are id, question, options, answer, image",
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(problem(line), format!("ward.jsonl:3: field {expected}"));
        }
    }

    #[test]
    fn refuses_lines_that_are_not_objects_and_repeated_keys() {
        assert_eq!(
            problem("\"q\""),
            "ward.jsonl:3: an object is expected, not a string"
        );
        assert_eq!(
            problem(r#"{"question": "#),
            "ward.jsonl:3: EOF while parsing a value, at column 13"
        );
        let twice = r#"{"question": "q", "options": {"A": "x", "A": "y"}}"#;
        assert_eq!(
            problem(twice),
            "ward.jsonl:3: the key `A` comes twice, at column 43"
        );
    }

    #[test]
    fn refuses_an_id_that_comes_twice() {
        // The first record's id is its number.
        let line = r#"{"id": "1", "question": "q", "options": ["x", "y"]}"#;
        assert_eq!(
            problem(line),
            "ward.jsonl:3: the id `1` came before, in line 1"
        );
    }

    #[test]
    fn refuses_a_file_without_questions() {
        assert_eq!(
            parse("").unwrap_err().to_string(),
            "ward.jsonl: no questions"
        );
        let blank = parse("\n\n").unwrap_err().to_string();
        assert_eq!(blank, "ward.jsonl: no questions; blank lines: 2");
    }

    #[test]
    fn reads_the_built_in_questions() {
        let dataset = demo().unwrap();
        assert_eq!(
            (dataset.name.as_str(), dataset.questions().len()),
            ("demo", 8)
        );
        assert!(dataset.notices.is_empty());
        for (number, question) in (1..).zip(dataset.questions()) {
            assert_eq!(question.id, format!("demo-{number}"));
            assert!(matches!(question.options.len(), 4 | 5));
        }
    }
}
