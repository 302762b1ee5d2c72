//! Questions, notes, recipes: files that users bring.

use std::path::Path;

use wardround::data::{Format, load};
use wardround::hub::DatasetCard;
use wardround::recipe::file::Recipe;

use super::damage::{damaged, damaged_text, withstands};

/// A file of that name whose content is damaged, read in a format.
fn file_withstands(name: &str, format: Format, good: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    withstands(name, damaged(good), |bytes| {
        std::fs::write(&path, bytes).unwrap();
        match load(&path, format) {
            Ok(dataset) => assert!(!dataset.items.is_empty()),
            Err(error) => assert!(error.to_string().chars().count() < 1000, "{error}"),
        }
    });
}

const MCQ: &str = r#"{"id": "q1", "question": "Which vitamin is missing in scurvy?", "options": {"A": "A", "B": "B12", "C": "C"}, "answer": "C"}
{"id": "q2", "question": "Seven times one?", "options": ["7", "8", "9"], "answer": "A"}
"#;

#[test]
fn questions_in_json_lines() {
    file_withstands("mcq.jsonl", Format::Mcq, &[MCQ]);
}

#[test]
fn questions_in_csv() {
    let quoted = "id,question,A,B,C,answer\nq1,\"Which, \"\"exactly\"\"?\",one,two,three,B\nq2,Why?,a,b,c,A\n";
    let bare = "question,A,B,answer\r\nWhy?,a,b,A\r\n";
    file_withstands("mcq.csv", Format::Mcq, &[quoted, bare]);
}

#[test]
fn medqa() {
    let row = r#"{"question": "Which?", "answer": "Two", "options": {"A": "One", "B": "Two"}, "meta_info": "step1", "answer_idx": "B"}"#;
    file_withstands("medqa.jsonl", Format::Medqa, &[row]);
}

#[test]
fn pubmedqa() {
    let file = r#"{"21645374": {"QUESTION": "Do they?", "CONTEXTS": ["Programmed.", "Dead."], "LABELS": ["BACKGROUND", "RESULTS"], "MESHES": ["Apoptosis"], "YEAR": "2011", "reasoning_required_pred": "yes", "final_decision": "yes", "LONG_ANSWER": "They do."}}"#;
    file_withstands("ori_pqal.json", Format::Pubmedqa, &[file]);
}

#[test]
fn mmlu_pro() {
    let row = r#"{"question_id": 1, "question": "Which?", "options": ["One", "Two", "Three"], "answer": "B", "answer_index": 1, "category": "health", "src": "ori_mmlu-professional_medicine", "cot_content": ""}"#;
    file_withstands("mmlu_pro.jsonl", Format::MmluPro, &[row]);
}

#[test]
fn medxpertqa() {
    let row = r#"{"id": "Text-1", "question": "Which?\nAnswer Choices: (A) One (B) Two", "options": {"A": "One", "B": "Two"}, "label": "B", "medical_task": "Diagnosis", "body_system": "Other", "question_type": "Reasoning"}"#;
    file_withstands("text.jsonl", Format::Medxpertqa, &[row]);
}

const NUMBERED: &str = "0 A 53-year-old man has a fever.\n1 He takes aspirin.\n2 Streptococcus is the cause.\n10 He rests.";

#[test]
fn notes_in_json_lines() {
    let note = r#"{"id": "n1", "text": "0 He has a fever.\n1 He takes aspirin.", "gold": {"flag": 1, "sentence_id": 1, "correction": "He takes nothing."}}
{"text": "No numbers. None at all.", "gold": {"flag": 0}}
{"sentences": ["One.", "Two."]}
"#;
    file_withstands("notes.jsonl", Format::Notes, &[note]);
}

#[test]
fn notes_in_csv() {
    let notes = "id,text,flag,sentence_id,correction\nn1,\"0 One.\n1 Two.\",1,1,Three.\nn2,Plain text. More.,0,,\n";
    file_withstands("notes.csv", Format::Notes, &[notes]);
}

#[test]
fn notes_in_text() {
    let plain =
        "He has a fever of 38.5 °C, e.g. after Dr. Who came. Is it so? \"Yes.\" 她发烧了。他没有。";
    file_withstands("note.txt", Format::Notes, &[NUMBERED, plain]);
}

#[test]
fn medec() {
    let rows = "Text ID,Text,Sentences,Error Flag,Error Sentence ID,Error Sentence,Corrected Sentence,Corrected Text,Error Type\n\
        ms-test-1,\"One. Two.\",\"0 One.\n1 Two.\",1,1,Two.,Three.,One. Three.,diagnosis\n\
        ms-test-2,One.,0 One.,0,-1,NA,NA,NA,NA\n";
    file_withstands("medec.csv", Format::Medec, &[rows]);
}

#[test]
fn mederrbench() {
    let rows = "Text ID,Text,Sentences,Error Flag,Error Sentence ID,Error Sentence,Corrected Sentence,Corrected Text,Error Type,Important Words\n\
        1,\"One. Two.\",\"0 One.\n1 Two.\",1,1,Two.,Three.,One. Three.,diagnosis,\"Two, Three\"\n";
    file_withstands("mederrbench.csv", Format::Mederrbench, &[rows]);
}

#[test]
fn recipes() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("recipes");
    let good = ["table1", "figure3", "medguards-table2"]
        .map(|name| std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap());
    withstands("recipe", damaged_text(good), |text| {
        let _ = Recipe::parse(&text, "recipe.toml");
    });
}

#[test]
fn cards_of_datasets() {
    let card = include_str!("../../datasets/medguards-keywords.toml");
    withstands("datasets/medguards-keywords.toml", damaged_text([card]), |text| {
        let _ = DatasetCard::parse(&text, Path::new("card.toml"));
    });
}
