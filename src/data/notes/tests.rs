//! The plain format for notes, as text files, JSON Lines and CSV.

use super::super::{Format, load};
use super::*;

fn parse(name: &str, text: &str) -> Result<Dataset, DataError> {
    let source = Source::new(Path::new(name), text.as_bytes().to_vec())?;
    Format::Notes.read(&source)
}

/// What is wrong with a file whose third line this is.
fn problem(line: &str) -> String {
    let text = format!("{{\"text\": \"Well.\"}}\n\n{line}\n");
    parse("ward.jsonl", &text).unwrap_err().to_string()
}

/// What is wrong with this gold of a note of two sentences.
fn gold_problem(gold: &str) -> String {
    problem(&format!(r#"{{"text": "Ill. Well.", "gold": {gold}}}"#))
}

fn documented(language: &str) -> &'static str {
    let mut blocks = include_str!("../../../docs/notes.md").split("```");
    blocks.find_map(|block| block.strip_prefix(language)?.strip_prefix('\n')).unwrap()
}

#[test]
fn reads_the_documented_examples() {
    for (file, language) in [("ward.jsonl", "json"), ("ward.csv", "csv")] {
        let dataset = parse(file, documented(language)).unwrap();
        let gold = dataset.notes()[0].gold.clone().unwrap();
        assert_eq!(gold.correction.as_deref(), Some("He takes paracetamol."));
    }
}

#[test]
fn reads_lines_and_tables_alike() {
    let lines = r#"{"id": "ward-7", "text": "Fever for two days. Malaria is treated with aspirin.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate.", "keywords": ["artesunate"]}}
        {"text": "Seen on the ward. Well.", "sentences": ["Seen on the ward.", "Well."], "gold": {"flag": 0}}"#;
    let table = "id,text,sentences,flag,sentence_id,sentence,correction,type,keywords,language\n\
        ward-7,Fever for two days. Malaria is treated with aspirin.,,1,1,,Malaria is treated with artesunate.,,artesunate,\n\
        ,Seen on the ward. Well.,\"Seen on the ward.\nWell.\",0,,,,,,\n";
    let lines = parse("ward.jsonl", lines).unwrap();
    let table = parse("ward.csv", table).unwrap();
    assert_eq!(lines.items, table.items);
    let [wrong, right] = lines.notes()[..] else {
        panic!("{lines:?}");
    };
    assert_eq!((&*wrong.id, &*right.id), ("ward-7", "2"));
    let error = wrong.error().unwrap();
    assert_eq!(error.sentence.as_deref(), Some("Malaria is treated with aspirin."));
    assert_eq!(error.keywords, ["artesunate"]);
    assert_eq!(right.sentences, ["Seen on the ward.", "Well."]);
    assert_eq!(right.gold, Some(GoldLine::default()));
    assert_eq!(
        lines.notices,
        [
            "notes without sentences, split at their numbers, or else at line ends and after . ! ? 。 ！ ？: 1 of 2"
        ]
    );
}

#[test]
fn reads_every_field_and_finds_the_language() {
    let line = r#"{"id": 17, "text": "0 患者发热。 1 好转。", "gold": {"flag": true, "sentence_id": 0, "sentence": " 患者发热。", "correction": "x", "type": "diagnosis", "keywords": ["x"]}}"#;
    let dataset = parse("ward.jsonl", line).unwrap();
    let note = dataset.notes()[0];
    assert_eq!((&*note.id, note.language), ("17", Language::Chinese));
    assert_eq!(note.sentences, ["患者发热。", "好转。"]);
    assert_eq!(note.text, "0 患者发热。 1 好转。");
    let told = r#"{"text": "ok", "language": "arabic", "gold": null}"#;
    let dataset = parse("ward.jsonl", told).unwrap();
    assert_eq!(dataset.notes()[0].language, Language::Arabic);
    assert_eq!(dataset.notices[1], "notes without gold, not scored: 1 of 1");
}

#[test]
fn reads_a_folder_in_the_order_of_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("ward");
    fs_err::create_dir(&path).unwrap();
    fs_err::write(path.join("b.TXT"), "\u{feff}Well.\r\nHome.").unwrap();
    fs_err::write(path.join("a.txt"), "Ill.\n").unwrap();
    fs_err::write(path.join("list.csv"), "x").unwrap();
    fs_err::write(path.join(".b.txt"), "A Mac's own.").unwrap();
    let dataset = load(&path, Format::Notes).unwrap();
    let ids: Vec<&str> = dataset.items.iter().map(|item| item.id()).collect();
    assert_eq!((&*dataset.name, ids), ("ward", vec!["a", "b"]));
    assert_eq!(dataset.notes()[1].sentences, ["Well.", "Home."]);
    assert_eq!(dataset.notices[0], "hidden files and others than .txt, left out: 2");
    assert_eq!(load(&path.join("b.TXT"), Format::Notes).unwrap().items[0].id(), "b");
    let whole = Source::new(&path, "Ill.\n\u{feff}Well.\r\nHome.".into()).unwrap();
    assert_eq!(dataset.sha256, super::super::source::sha256(&[&whole]));

    fs_err::write(path.join("c.txt"), " \n").unwrap();
    let error = load(&path, Format::Notes).unwrap_err().to_string();
    assert!(error.ends_with("c.txt:1: field `text` is empty"), "{error}");
    fs_err::write(path.join("c.txt"), b"Ill\n\xff").unwrap();
    let error = load(&path, Format::Notes).unwrap_err().to_string();
    assert!(error.ends_with("c.txt:2: not valid UTF-8"), "{error}");
}

#[test]
fn refuses_a_folder_without_notes() {
    let folder = tempfile::tempdir().unwrap();
    fs_err::create_dir(folder.path().join("more.txt")).unwrap();
    let error = load(folder.path(), Format::Notes).unwrap_err().to_string();
    assert!(error.ends_with(": no notes; folders, whose notes are left out: 1"), "{error}");
}

#[test]
fn refuses_bad_rows_with_line_and_field() {
    let cases = [
        (r#"{"id": "1"}"#, "`text` is missing"),
        (r#"{"text": " "}"#, "`text` is empty"),
        (r#"{"text": "a", "sentences": "a"}"#, "`sentences` must be a list, and not empty"),
        (r#"{"text": "a", "sentences": []}"#, "`sentences` must be a list, and not empty"),
        (r#"{"text": "Ill. Well.", "sentences": ["Ill."]}"#, "`sentences` are not those of `text`"),
        (
            r#"{"text": "a", "language": "greek"}"#,
            "`language` is not one of english, chinese, arabic",
        ),
        (r#"{"text": "a", "gold": 1}"#, "`gold` must be an object"),
        (
            r#"{"text": "a", "note": "b"}"#,
            "`note` is unknown; the fields are id, text, sentences, language, gold",
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(problem(line), format!("ward.jsonl:3: field {expected}"));
    }
}

#[test]
fn refuses_gold_that_does_not_hold_together() {
    let cases = [
        ("{}", "`flag` is missing"),
        (r#"{"flag": 2}"#, "`flag` is not 0 or 1"),
        (r#"{"flag": 0, "correction": "x"}"#, "`correction` is given, where the flag is 0"),
        (r#"{"flag": 1}"#, "`sentence_id` is missing"),
        (
            r#"{"flag": 1, "sentence_id": 2, "correction": "x"}"#,
            "`sentence_id` is not one of 0 to 1",
        ),
        (
            r#"{"flag": 1, "sentence_id": -1, "correction": "x"}"#,
            "`sentence_id` is not one of 0 to 1",
        ),
        (r#"{"flag": 1, "sentence_id": 1}"#, "`correction` is missing"),
        (
            r#"{"flag": 1, "sentence_id": 1, "sentence": "Ill.", "correction": "x"}"#,
            "`sentence` is not sentence 1",
        ),
        (
            r#"{"flag": 1, "kind": "x"}"#,
            "`kind` is unknown; the fields are flag, sentence_id, sentence, correction, type, keywords",
        ),
    ];
    for (gold, expected) in cases {
        assert_eq!(gold_problem(gold), format!("ward.jsonl:3: field {expected}"));
    }
}

#[test]
fn refuses_bad_tables() {
    let problem = |text: &str| {
        let source = Source::new(Path::new("ward.csv"), text.as_bytes().to_vec()).unwrap();
        Format::Notes.read(&source).unwrap_err().to_string()
    };
    assert_eq!(
        problem("id,note\n1,a\n"),
        "ward.csv:2: field `note` is unknown; the fields are id, text, sentences, language, gold"
    );
    assert_eq!(problem("text,flag\na,x\n"), "ward.csv:2: field `flag` is not 0 or 1");
    assert_eq!(problem("text,correction\na,x\n"), "ward.csv:2: field `flag` is missing");
    assert_eq!(problem("id,text\n1,a\n1,b\n"), "ward.csv:3: the id `1` came before, in line 2");
    assert_eq!(problem("text,id\n\"a\n"), "ward.csv:2: a quote is not closed");
    assert_eq!(problem("text,id\n"), "ward.csv: no notes");
}
