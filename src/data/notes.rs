//! The plain format for notes of your own: a `.txt` file or a folder of them, JSON Lines, or CSV in a file whose name
//! ends in `.csv`.
//!
//! A `.txt` file is a note and its name without the extension the note's id; a folder's run in the order of the names.
//! Else one note a line:
//!
//! ```json
//! {"id": "ward-7", "text": "Fever for two days. Malaria is treated with aspirin.", "gold": {"flag": 1, "sentence_id": 1, "correction": "Malaria is treated with artesunate.", "keywords": ["artesunate"]}}
//! {"text": "Seen on the ward. Well.", "sentences": ["Seen on the ward.", "Well."], "gold": {"flag": 0}}
//! ```
//!
//! The same in CSV, where a line break inside a quoted cell is part of it:
//!
//! ```csv
//! id,text,sentences,flag,sentence_id,sentence,correction,type,keywords,language
//! ward-7,Fever for two days. Malaria is treated with aspirin.,,1,1,,Malaria is treated with artesunate.,,artesunate,
//! ,Seen on the ward. Well.,"Seen on the ward.
//! Well.",0,,,,,,
//! ```
//!
//! | field | |
//! |---|---|
//! | `text` | required |
//! | `sentences` | a list; in CSV one a line |
//! | `gold` | `flag` (1: the note has an error; 0: it is right) and for flag 1 `sentence_id` (from 0), `correction`, and if you like `sentence` (which must be that sentence), `type` and `keywords` (a list; in CSV between `,` or `;`); in CSV columns of their own. Where it is missing the note is checked but not scored |
//! | `language` | `english`, `chinese` or `arabic`; else that of the note's script |
//! | `id` | unique in the file, a string or an integer; where it is missing, the record's number from 1 |
//!
//! Where sentences are missing, a text that numbers them 0, 1, 2, … is split at the numbers; any other is split at line
//! ends, and after . ! ? before a blank, or 。 ！ ？, but not after a common abbreviation. The notices say how many notes
//! were.
//!
//! Files are UTF-8, with or without a byte order mark, with either line end. A missing field may also be `null`, in CSV
//! an empty cell or no column at all. Any other field is refused: it may be a misspelt one.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::is_csv;
use super::row::Row;
use super::source::{self, Source};
use super::{
    DataError, Draft, Note, NoteError, NoteGold, Place, items, notes_csv, script, sentences,
};
use crate::record::Language;

const FIELDS: [&str; 5] = ["id", "text", "sentences", "gold", "language"];
pub(super) const GOLD_FIELDS: [&str; 6] = [
    "flag",
    "sentence_id",
    "sentence",
    "correction",
    "type",
    "keywords",
];

/// The notes of a file.
pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let records = match is_csv(&source.path) {
        true => notes_csv::rows(source)?,
        false => source.rows()?,
    };
    let (mut notes, mut split) = (Vec::new(), 0);
    for (number, row) in (1_usize..).zip(&records.rows) {
        notes.push((row.place.clone(), note(row, number)?));
        split += usize::from(row.get("sentences").is_none());
    }
    let notices = records.notices();
    Ok(draft(&source.path, &[source], notes, split, notices))
}

/// The notes of a folder.
pub(super) fn read_folder(folder: &Path) -> Result<Draft, DataError> {
    let (mut paths, mut others) = (Vec::new(), 0);
    for entry in fs_err::read_dir(folder)? {
        let path: PathBuf = entry?.path();
        let is_text = path.extension().is_some_and(|extension| extension == "txt");
        match is_text && path.is_file() {
            true => paths.push(path),
            false => others += 1,
        }
    }
    paths.sort();
    let (mut sources, mut notes) = (Vec::new(), Vec::new());
    for path in &paths {
        let source = Source::read(path)?;
        notes.push(whole(&source)?);
        sources.push(source);
    }
    let mut notices = Vec::new();
    if others > 0 {
        notices.push(format!("not .txt files, left out: {others}"));
    }
    let (sources, split): (Vec<&Source>, _) = (sources.iter().collect(), notes.len());
    Ok(draft(folder, &sources, notes, split, notices))
}

/// A file that is one note.
pub(super) fn read_text(source: &Source) -> Result<Draft, DataError> {
    let notes = vec![whole(source)?];
    Ok(draft(&source.path, &[source], notes, 1, Vec::new()))
}

fn whole(source: &Source) -> Result<(Place, Note), DataError> {
    let id = source
        .path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy();
    let fields = [("id", id.as_ref()), ("text", source.text())];
    let fields: Map<String, Value> = fields
        .into_iter()
        .map(|(field, text)| (field.to_owned(), text.into()))
        .collect();
    let row = Row::new(source.at_line(1), fields.into())?;
    Ok((row.place.clone(), note(&row, 0)?))
}

fn draft(
    path: &Path,
    sources: &[&Source],
    notes: Vec<(Place, Note)>,
    split: usize,
    mut notices: Vec<String>,
) -> Draft {
    let total = notes.len();
    if split > 0 {
        notices.push(format!(
            "notes without sentences, split at their numbers, or else at line ends and after . ! ? 。 ！ ？: {split} of {total}"
        ));
    }
    let unscored = notes.iter().filter(|(_, note)| note.gold.is_none()).count();
    if unscored > 0 {
        notices.push(format!(
            "notes without gold, not scored: {unscored} of {total}"
        ));
    }
    let name = path.file_stem().unwrap_or_default();
    Draft {
        name: name.to_string_lossy().into_owned(),
        sha256: source::sha256(sources),
        items: items(notes),
        notices,
    }
}

fn note(row: &Row, number: usize) -> Result<Note, DataError> {
    row.refuse_others(&FIELDS)?;
    let text = row.text("text")?;
    let sentences = match row.get("sentences") {
        Some(_) => row.texts("sentences")?,
        None => match sentences::numbered(text) {
            numbered if numbered.is_empty() => sentences::split(text),
            numbered => numbered,
        },
    };
    let language = match row.optional_text("language")? {
        None => script::language(text),
        Some(name) => name.parse::<Language>().map_err(|_| {
            let problem = format!("is {name:?}, not one of english, chinese, arabic");
            row.wrong("language", problem)
        })?,
    };
    let gold = row.object("gold")?;
    Ok(Note {
        id: row.optional_id("id")?.unwrap_or_else(|| number.to_string()),
        gold: gold.map(|gold| self::gold(&gold, &sentences)).transpose()?,
        text: text.to_owned(),
        sentences: sentences.into_iter().map(str::to_owned).collect(),
        language,
    })
}

fn gold(row: &Row, sentences: &[&str]) -> Result<NoteGold, DataError> {
    row.refuse_others(&GOLD_FIELDS)?;
    if !is_wrong(row)? {
        let mut others = GOLD_FIELDS[1..].iter();
        return match others.find(|field| row.get(field).is_some()) {
            Some(field) => Err(row.wrong(field, "is given, where the flag is 0")),
            None => Ok(NoteGold { error: None }),
        };
    }
    let place = integer(row.require("sentence_id")?);
    let sentence_id = place.filter(|place| *place < sentences.len());
    let sentence_id = sentence_id.ok_or_else(|| {
        let (found, last) = (row.fields["sentence_id"].to_string(), sentences.len() - 1);
        row.wrong("sentence_id", format!("is {found}, not one of 0 to {last}"))
    })?;
    let sentence = sentences[sentence_id];
    if let Some(given) = row.optional_text("sentence")?
        && !given.split_whitespace().eq(sentence.split_whitespace())
    {
        let problem = format!("is not sentence {sentence_id}, which is {sentence:?}");
        return Err(row.wrong("sentence", problem));
    }
    let keywords = match row.get("keywords") {
        Some(_) => row.texts("keywords")?,
        None => Vec::new(),
    };
    Ok(NoteGold {
        error: Some(NoteError {
            sentence_id,
            sentence: sentence.to_owned(),
            correction: row.text("correction")?.to_owned(),
            kind: row.optional_text("type")?.map(str::to_owned),
            keywords: keywords.into_iter().map(str::to_owned).collect(),
            difficulty: None,
            reasoning: None,
        }),
    })
}

fn is_wrong(row: &Row) -> Result<bool, DataError> {
    match row.require("flag")? {
        Value::Bool(flag) => Ok(*flag),
        flag => match integer(flag) {
            Some(flag @ (0 | 1)) => Ok(flag == 1),
            _ => Err(row.wrong("flag", format!("is {flag}, not 0 or 1"))),
        },
    }
}

/// A number of JSON, or of a CSV cell.
fn integer(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => usize::try_from(other.as_u64()?).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dataset, Format, load, read};
    use super::*;

    fn parse(name: &str, text: &str) -> Result<Dataset, DataError> {
        let source = Source::new(Path::new(name), text.as_bytes().to_vec())?;
        read(source, Format::Notes)
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

    fn documented(language: &str) -> String {
        let text = include_str!("notes.rs");
        let mut blocks = text.split("//! ```");
        let block = blocks.find_map(|block| block.strip_prefix(language)?.strip_prefix('\n'));
        block.unwrap().replace("//! ", "")
    }

    #[test]
    fn reads_the_documented_examples_alike() {
        let lines = parse("ward.jsonl", &documented("json")).unwrap();
        let table = parse("ward.csv", &documented("csv")).unwrap();
        assert_eq!(lines.items, table.items);
        let [wrong, right] = lines.notes()[..] else {
            panic!("{lines:?}");
        };
        assert_eq!((&*wrong.id, &*right.id), ("ward-7", "2"));
        let error = wrong.gold.as_ref().unwrap().error.as_ref().unwrap();
        assert_eq!(error.sentence, "Malaria is treated with aspirin.");
        assert_eq!(error.keywords, ["artesunate"]);
        assert_eq!(right.sentences, ["Seen on the ward.", "Well."]);
        assert!(!right.gold.as_ref().unwrap().is_wrong());
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
        fs_err::write(path.join("b.txt"), "\u{feff}Well.\r\nHome.").unwrap();
        fs_err::write(path.join("a.txt"), "Ill.\n").unwrap();
        fs_err::write(path.join("list.csv"), "x").unwrap();
        let dataset = load(&path, Format::Notes).unwrap();
        let ids: Vec<&str> = dataset.items.iter().map(|item| item.id()).collect();
        assert_eq!((&*dataset.name, ids), ("ward", vec!["a", "b"]));
        assert_eq!(dataset.notes()[1].sentences, ["Well.", "Home."]);
        assert_eq!(dataset.notices[0], "not .txt files, left out: 1");
        let whole = Source::new(&path, "Ill.\n\u{feff}Well.\r\nHome.".into()).unwrap();
        assert_eq!(dataset.sha256, source::sha256(&[&whole]));

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
        assert!(
            error.ends_with(": no notes; not .txt files, left out: 1"),
            "{error}"
        );
    }

    #[test]
    fn refuses_bad_rows_with_line_and_field() {
        let cases = [
            (r#"{"id": "1"}"#, "`text` is missing"),
            (r#"{"text": " "}"#, "`text` is empty"),
            (
                r#"{"text": "a", "sentences": "a"}"#,
                "`sentences` must be a list, not a string",
            ),
            (r#"{"text": "a", "sentences": []}"#, "`sentences` is empty"),
            (
                r#"{"text": "a", "language": "greek"}"#,
                "`language` is \"greek\", not one of english, chinese, arabic",
            ),
            (
                r#"{"text": "a", "gold": 1}"#,
                "`gold` must be an object, not a number",
            ),
            (
                r#"{"text": "a", "note": "b"}"#,
                "`note` is unknown; the fields are id, text, sentences, gold, language",
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
            (r#"{"flag": 2}"#, "`flag` is 2, not 0 or 1"),
            (
                r#"{"flag": 0, "correction": "x"}"#,
                "`correction` is given, where the flag is 0",
            ),
            (r#"{"flag": 1}"#, "`sentence_id` is missing"),
            (
                r#"{"flag": 1, "sentence_id": 2, "correction": "x"}"#,
                "`sentence_id` is 2, not one of 0 to 1",
            ),
            (
                r#"{"flag": 1, "sentence_id": -1, "correction": "x"}"#,
                "`sentence_id` is -1, not one of 0 to 1",
            ),
            (
                r#"{"flag": 1, "sentence_id": 1}"#,
                "`correction` is missing",
            ),
            (
                r#"{"flag": 1, "sentence_id": 1, "sentence": "Ill.", "correction": "x"}"#,
                "`sentence` is not sentence 1, which is \"Well.\"",
            ),
            (
                r#"{"flag": 1, "kind": "x"}"#,
                "`kind` is unknown; the fields are flag, sentence_id, sentence, correction, type, keywords",
            ),
        ];
        for (gold, expected) in cases {
            assert_eq!(
                gold_problem(gold),
                format!("ward.jsonl:3: field {expected}")
            );
        }
    }
}
