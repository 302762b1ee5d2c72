//! Files of notes that are not what their format says, and systems that take no notes.

use wardround::model::Family;

use crate::binary::Scratch;

/// A file with this content is refused in this format, with all of these words.
#[track_caller]
fn refused(name: &str, content: impl AsRef<[u8]>, format: &str, parts: &[&str]) {
    let scratch = Scratch::new();
    scratch.write(name, content);
    // Notes are read before models are looked for.
    let run = format!("run base-llm --data {name} --format {format} --panel no-model --out out");
    let outcome = scratch.wardround(run);
    outcome.refused(2, parts);
    assert!(outcome.stdout.is_empty());
}

const HEADER: &str =
    "Text ID,Text,Sentences,Error Flag,Error Sentence ID,Error Sentence,Corrected Sentence";
const MEND: &str =
    "hint: fix the row, or take it out; if all rows look like it, another format may be right";

#[test]
fn a_system_that_answers_questions_refuses_notes_before_it_reads_them() {
    let scratch = Scratch::new();
    scratch.model(Family::Llama);
    for format in ["medec", "mederrbench", "notes"] {
        scratch
            .wardround(format!(
                "run medmad --data nowhere --format {format} --panel llama --out out"
            ))
            .refused(
                2,
                &[
                    &format!("medmad takes questions, and {format} holds notes"),
                    "hint: the formats of questions are medqa, pubmedqa, mmlu-pro, medxpertqa, mcq",
                ],
            );
    }
    assert!(!scratch.path("out").exists());
}

#[test]
fn a_sentence_id_that_no_sentence_has() {
    let content = format!("{HEADER}\nms-test-0,A.,0 A.,1,1,A.,B.\n");
    let problem = "x.csv:2: field `Error Sentence ID` is not one of 0 to 0";
    refused("x.csv", &content, "medec", &[problem, MEND]);
    let line = r#"{"text": "A. B.", "gold": {"flag": 1, "sentence_id": 2, "correction": "C."}}"#;
    refused(
        "x.jsonl",
        line,
        "notes",
        &["x.jsonl:1: field `sentence_id` is not one of 0 to 1", MEND],
    );
}

#[test]
fn an_error_without_a_correction() {
    let content = format!("{HEADER}\n\nms-test-0,A.,0 A.,1,0,A.,\n");
    let problem = "x.csv:3: field `Corrected Sentence` is missing";
    refused("x.csv", &content, "medec", &[problem]);
    let line = r#"{"text": "A.", "gold": {"flag": 1, "sentence_id": 0}}"#;
    let problem = "x.jsonl:1: field `correction` is missing";
    refused("x.jsonl", line, "notes", &[problem]);
}

#[test]
fn sentences_that_are_not_numbered() {
    let content = format!("{HEADER}\nms-test-0,A.,1 A.,0,-1,NA,NA\n");
    let problem = "x.csv:2: field `Sentences` does not begin with 0";
    refused("x.csv", content, "medec", &[problem]);
}

#[test]
fn notes_of_medec_uw_alone() {
    let content = format!("{HEADER}\nuw-test-0,A.,0 A.,0,-1,NA,NA\n,,,,,,\n");
    let parts = [
        "x.csv: no notes; rows without an id, left out: 1 of 2; rows whose id does not begin with ms-",
        "data-use agreement): 1 of 2",
    ];
    refused("x.csv", content, "medec", &parts);
}

#[test]
fn a_broken_table() {
    let cut = format!("{HEADER}\nms-test-0,A.,\"0 A.,0,-1,NA,NA\n");
    refused("x.csv", cut, "medec", &["x.csv:2: a quote is not closed", "hint: columns"]);
    let short = format!("{HEADER}\nms-test-0,A.\n");
    let problem = "x.csv:2: 2 cells, where the header has 7";
    refused("x.csv", short, "mederrbench", &[problem]);
    let other = "id,text\n1,A.\n";
    let problem = "x.csv: no notes; rows without an id, left out: 1 of 1";
    refused("x.csv", other, "medec", &[problem]);
    let twice = format!("{HEADER},Text\n");
    refused("x.csv", twice, "medec", &["x.csv:1: field `Text` comes twice in the header"]);
    let latin = [HEADER.as_bytes(), b"\nms-test-0,\xe9"].concat();
    refused("x.csv", latin, "medec", &["x.csv:2: not valid UTF-8"]);
}

#[test]
fn an_id_that_comes_twice() {
    let row = "ms-test-0,A.,0 A.,0,-1,NA,NA\n";
    let content = format!("{HEADER}\n{row}{row}");
    let problem = "x.csv:3: the id `ms-test-0` came before, in line 2";
    refused("x.csv", content, "medec", &[problem]);
}

#[test]
fn lines_that_are_no_notes() {
    let cut = "{\"text\": \"A.\"}\n{\"text\": \"cut\n";
    let parts = [
        "x.jsonl:2: EOF while parsing a string",
        "hint: medqa, mmlu-pro, medxpertqa, mcq and notes",
    ];
    refused("x.jsonl", cut, "notes", &parts);
    let misspelt = r#"{"txt": "A."}"#;
    let problem =
        "x.jsonl:1: field `txt` is unknown; the fields are id, text, sentences, language, gold";
    refused("x.jsonl", misspelt, "notes", &[problem]);
    refused("x.jsonl", "\n", "notes", &["x.jsonl: no notes; blank lines: 1"]);
}

#[test]
fn a_folder_without_notes_or_with_an_empty_one() {
    let scratch = Scratch::new();
    let folder = scratch.path("ward");
    std::fs::create_dir(&folder).unwrap();
    let run = "run base-llm --format notes --data ward --panel no-model --out out";
    scratch.wardround(run).refused(2, &["ward: no notes"]);
    scratch.write("ward/a.txt", "Well.");
    scratch.write("ward/b.txt", " \n");
    let problem = "ward/b.txt:1: field `text` is empty";
    scratch.wardround(run).refused(2, &[problem]);
    let medec = run.replace("notes", "medec");
    scratch.wardround(medec).refused(2, &["ward", "Is a directory"]);
}
