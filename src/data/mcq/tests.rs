//! The plain format for questions, as JSON Lines and as CSV.

use std::path::Path;

use super::super::{DEMO_PATH, Format, load};
use super::*;

fn parse(text: &str) -> Result<Dataset, DataError> {
    Format::Mcq.read(&Source::new(Path::new("ward.jsonl"), text.as_bytes().to_vec())?)
}

/// What is wrong with a file whose third line this is.
fn problem(line: &str) -> String {
    let before = r#"{"question": "q", "options": ["x", "y"]}"#;
    parse(&format!("{before}\n\n{line}\n")).unwrap_err().to_string()
}

#[test]
fn reads_the_documented_example() {
    let page = include_str!("../../../docs/running.md");
    let first = page.lines().find(|line| line.starts_with("{\"id\"")).unwrap();
    let second = r#"{"question": "Which of these is a bone of the leg?", "options": ["Ulna", "Tibia", "Clavicle"]}"#;
    let dataset = parse(&format!("{first}\r\n{second}\r\n")).unwrap();
    assert_eq!(dataset.name, "ward");
    assert_eq!(dataset.questions().len(), 2);
    let [first, second] = [dataset.questions()[0], dataset.questions()[1]];
    assert_eq!((first.id.as_str(), first.gold, first.option('B')), ("q1", Some('C'), Some("B12")));
    assert_eq!(
        (second.id.as_str(), second.gold, second.option('C')),
        ("2", None, Some("Clavicle"))
    );
    assert_eq!(dataset.notices, ["questions without an answer, not scored: 1 of 2"]);
}

#[test]
fn accepts_every_field_and_options_in_any_order() {
    let line = r#"{"id": 17, "question": "q", "options": {"B": "y", "A": "x"}, "answer": null}"#;
    let dataset = parse(&format!("\u{feff}{line}")).unwrap();
    let question = dataset.questions()[0];
    assert_eq!(question.letters().collect::<String>(), "AB");
    assert_eq!(question.id, "17");
    let ten = r#"{"question": "q", "options": ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9"], "answer": "J"}"#;
    assert_eq!(parse(ten).unwrap().questions()[0].gold, Some('J'));
}

#[test]
fn refuses_bad_rows_with_line_and_field() {
    let cases = [
        (r#"{"options": ["x", "y"]}"#, "`question` is missing"),
        (r#"{"question": " ", "options": ["x", "y"]}"#, "`question` is empty"),
        (r#"{"question": 1, "options": ["x", "y"]}"#, "`question` must be a string"),
        (r#"{"question": "q"}"#, "`options` is missing"),
        (r#"{"question": "q", "options": "x"}"#, "`options` must be an object or a list"),
        (r#"{"question": "q", "options": ["x"]}"#, "`options` must hold 2 to 10 options, not 1"),
        (
            r#"{"question": "q", "options": [0,1,2,3,4,5,6,7,8,9,10]}"#,
            "`options` must hold 2 to 10 options, not 11",
        ),
        (r#"{"question": "q", "options": ["x", ""]}"#, "`options.B` is empty"),
        (r#"{"question": "q", "options": {"A": "x", "C": "y"}}"#, "`options` has no option B"),
        (r#"{"question": "q", "options": {"a": "x", "b": "y"}}"#, "`options` has no option A"),
        (
            r#"{"question": "q", "options": ["x", "y"], "answer": "C"}"#,
            "`answer` is not one of A, B",
        ),
        (
            r#"{"question": "q", "options": ["x", "y"], "answer": "JOHN-DOE"}"#,
            "`answer` is not one of A, B",
        ),
        (r#"{"question": "q", "options": ["x", "y"], "answer": 0}"#, "`answer` must be a string"),
        (
            r##"{"question": "q", "options": ["x", "y"], "id": "#1"}"##,
            "`id` is empty, or has spaces around it, # before it or a control character in it",
        ),
        (
            r#"{"question": "q", "options": ["x", "y"], "awnser": "A"}"#,
            "`awnser` is unknown; the fields are id, question, options, answer",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(problem(line), format!("ward.jsonl:3: field {expected}"));
    }
}

#[test]
fn refuses_lines_that_are_not_objects_and_repeated_keys() {
    assert_eq!(problem("\"q\""), "ward.jsonl:3: an object is expected");
    assert_eq!(
        problem(r#"{"question": "#),
        "ward.jsonl:3: EOF while parsing a value, at column 13"
    );
    let twice = r#"{"question": "q", "options": {"A": "x", "A": "y"}}"#;
    assert_eq!(problem(twice), "ward.jsonl:3: the key `A` comes twice, at column 43");
}

#[test]
fn refuses_an_id_that_comes_twice() {
    // The first record's id is its number.
    let line = r#"{"id": "1", "question": "q", "options": ["x", "y"]}"#;
    assert_eq!(problem(line), "ward.jsonl:3: the id `1` came before, in line 1");
}

#[test]
fn refuses_a_file_without_questions() {
    assert_eq!(parse("").unwrap_err().to_string(), "ward.jsonl: no questions");
    let blank = parse("\n\n").unwrap_err().to_string();
    assert_eq!(blank, "ward.jsonl: no questions; blank lines: 2");
}

#[test]
fn reads_the_built_in_questions() {
    let dataset = load(Path::new(DEMO_PATH), Format::Mcq).unwrap();
    assert_eq!((dataset.name.as_str(), dataset.questions().len()), ("demo", 8));
    assert!(dataset.notices.is_empty());
    for (number, question) in (1..).zip(dataset.questions()) {
        assert_eq!(question.id, format!("demo-{number}"));
        assert!(matches!(question.options.len(), 4 | 5));
    }
}

fn parse_csv(text: &str) -> Result<Dataset, DataError> {
    Format::Mcq.read(&Source::new(Path::new("ward.csv"), text.as_bytes().to_vec())?)
}

fn csv_problem(text: &str) -> String {
    parse_csv(text).unwrap_err().to_string()
}

#[test]
fn reads_the_documented_table() {
    let page = include_str!("../../../docs/running.md");
    let header = page.split('`').find(|code| code.starts_with("id,question,")).unwrap();
    let rows = "ward-7,Which vitamin is retinol?,Vitamin A,Vitamin D,,,A\n,Which of these is a bone of the leg?,Ulna,Tibia,Clavicle,,\n";
    let dataset = parse_csv(&format!("{header}\n{rows}")).unwrap();
    let [first, second] = [dataset.questions()[0], dataset.questions()[1]];
    assert_eq!((first.id.as_str(), first.gold, first.options.len()), ("ward-7", Some('A'), 2));
    assert_eq!(
        (second.id.as_str(), second.gold, second.option('C')),
        ("2", None, Some("Clavicle"))
    );
}

#[test]
fn reads_quoted_cells_and_numbers_lines_as_an_editor_does() {
    let text = "\u{feff}\r\nquestion,A,B\r\n\"say \"\"q\"\",\r\ntwice\",x,y\r\n\r\n,,\r\nr,x\r\n";
    assert_eq!(csv_problem(text), "ward.csv:7: 2 cells, where the header has 3");
    let dataset = parse_csv(&text.replace("r,x", "r,x,y")).unwrap();
    assert_eq!(dataset.questions()[0].question, "say \"q\",\ntwice");
    assert_eq!(dataset.notices[0], "blank lines: 3");
}

#[test]
fn refuses_bad_headers() {
    let cases = [("question,A,B,A\n", "`A` comes twice in the header")];
    for (text, expected) in cases {
        assert_eq!(csv_problem(text), format!("ward.csv:1: field {expected}"));
    }
    let cases = [
        ("question,A,B,D\nq,x,y,z", "`options` has no option C"),
        ("question,A\nq,x", "`options` must hold 2 to 10 options, not 1"),
        ("A,B\nx,y", "`question` is missing"),
        (
            "question,A,B,gold\nq,x,y,A",
            "`gold` is unknown; the fields are id, question, options, answer",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(csv_problem(text), format!("ward.csv:2: field {expected}"));
    }
}

#[test]
fn refuses_bad_records() {
    let cases = [
        ("1,q,x,y,z\n", "2: 5 cells, where the header has 6"),
        ("1,q,x,y,z,A,\n", "2: 7 cells, where the header has 6"),
        ("1,q,x,,z,A\n", "2: field `options` has no option B"),
        ("1,q,x,,,A\n", "2: field `options` must hold 2 to 10 options, not 1"),
        ("1,,x,y,z,A\n", "2: field `question` is missing"),
        ("1,q,x,y,,C\n", "2: field `answer` is not one of A, B"),
        ("1,q,x,y,z,A\n1,q,x,y,z,A\n", "3: the id `1` came before, in line 2"),
        ("1,q,x,y,z,A\n2,q,x,y,z,\"A\n\n", "3: a quote is not closed"),
    ];
    for (text, expected) in cases {
        assert_eq!(
            csv_problem(&format!("id,question,A,B,C,answer\n{text}")),
            format!("ward.csv:{expected}")
        );
    }
}

#[test]
fn refuses_a_table_without_records() {
    assert_eq!(csv_problem(""), "ward.csv: no questions");
    assert_eq!(csv_problem("question,A,B\n"), "ward.csv: no questions");
}
