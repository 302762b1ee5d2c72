//! Files of questions that are not what their format says: each is refused with its place.

use wardround::model::Family;

use crate::binary::Scratch;

/// A file with this content is refused in this format, with all of these words.
#[track_caller]
fn refused(name: &str, content: &[u8], format: &str, parts: &[&str]) {
    let scratch = Scratch::new();
    scratch.write(name, content);
    scratch.model(Family::Llama);
    scratch
        .wardround(format!("run medmad --data {name} --format {format} --panel llama --out out"))
        .refused(2, parts);
    assert!(!scratch.path("out").exists());
}

const GOOD: &str = r#"{"question": "Which?", "options": ["this", "that"], "answer": "A"}"#;

#[test]
fn a_line_that_is_no_json() {
    let content = format!("{GOOD}\n{{\"question\": \"cut\n");
    let parts = [
        "x.jsonl:2: EOF while parsing a string, at column ",
        "hint: medqa, mmlu-pro, medxpertqa, mcq and notes files hold one",
    ];
    refused("x.jsonl", content.as_bytes(), "mcq", &parts);
}

#[test]
fn a_field_that_is_missing() {
    let content = format!("{GOOD}\n\n{{\"question\": \"Which?\"}}\n");
    refused(
        "x.jsonl",
        content.as_bytes(),
        "mcq",
        &["x.jsonl:3: field `options` is missing", "hint: "],
    );
}

#[test]
fn a_letter_that_no_option_has() {
    let content = GOOD.replace("\"A\"", "\"C\"");
    refused(
        "x.jsonl",
        content.as_bytes(),
        "mcq",
        &["x.jsonl:1: field `answer` is not one of A, B"],
    );
    let content = "question,A,B,answer\nWhich?,this,that,D\n";
    refused("x.csv", content.as_bytes(), "mcq", &["x.csv:2: field `answer` is not one of A, B"]);
}

#[test]
fn an_id_that_comes_twice() {
    let row = GOOD.replace("{\"q", "{\"id\": \"one\", \"q");
    let content = format!("{row}\n{row}\n");
    refused(
        "x.jsonl",
        content.as_bytes(),
        "mcq",
        &["x.jsonl:2: the id `one` came before, in line 1"],
    );
}

#[test]
fn a_misspelt_field() {
    let content = GOOD.replace("options", "optoins");
    let parts =
        ["x.jsonl:1: field `optoins` is unknown; the fields are id, question, options, answer"];
    refused("x.jsonl", content.as_bytes(), "mcq", &parts);
}

#[test]
fn text_that_is_not_utf8() {
    let content = [GOOD.as_bytes(), b"\n\xff\n"].concat();
    refused(
        "x.jsonl",
        &content,
        "mcq",
        &["x.jsonl:2: not valid UTF-8", "hint: save the file as UTF-8"],
    );
}

#[test]
fn the_wrong_format_for_a_file() {
    let formats = "hint: medqa, mmlu-pro, medxpertqa, mcq and notes files hold one JSON object a line, pubmedqa files one in all";
    let two = format!("{GOOD}\n{GOOD}\n");
    refused("x.jsonl", two.as_bytes(), "pubmedqa", &["x.jsonl:2: trailing characters", formats]);
    let pretty = b"{\n  \"1\": {}\n}\n";
    refused("x.json", pretty, "medqa", &["x.json:1: EOF while parsing an object", formats]);
    let another = "another format may be right";
    refused("x.jsonl", GOOD.as_bytes(), "medqa", &["x.jsonl:1: field `", another]);
    refused(
        "x.jsonl",
        GOOD.as_bytes(),
        "mmlu-pro",
        &["x.jsonl:1: field `src` is missing", another],
    );
    let medqa = GOOD.replace("{\"q", "{\"meta_info\": \"step1\", \"q");
    refused(
        "x.jsonl",
        medqa.as_bytes(),
        "mcq",
        &["x.jsonl:1: field `meta_info` is unknown", another],
    );
    refused(
        "x.jsonl",
        GOOD.as_bytes(),
        "medbullets",
        &["'medbullets'", "medqa, pubmedqa, mmlu-pro, medxpertqa, mcq"],
    );
}

#[test]
fn a_file_that_is_empty_absent_or_a_directory() {
    refused("x.jsonl", b"", "mcq", &["x.jsonl: no questions"]);
    refused("x.jsonl", b"\n\n", "mcq", &["x.jsonl: no questions; blank lines: 2"]);
    refused("x.json", b"", "pubmedqa", &["x.json:1: EOF while parsing a value"]);
    let scratch = Scratch::new();
    for (data, problem) in [("nowhere.jsonl", "No such file"), (".", "Is a directory")] {
        scratch
            .wardround(format!("run medmad --data {data} --format mcq"))
            .refused(2, &[data, problem]);
    }
}

#[test]
fn a_choice_of_questions_that_are_not_there() {
    let scratch = Scratch::new();
    scratch.questions(2);
    scratch.write("ids", "# mine\nq2\nq7\n");
    for (flags, parts) in [
        ("--ids ids", ["ids:3: no item has the id `q7`", "hint: an id of this dataset is `q1`"]),
        ("--ids noids", ["noids", "No such file"]),
        ("--limit 0", ["no item is chosen", ""]),
    ] {
        scratch.run_one("out", flags).refused(2, &parts);
    }
}
