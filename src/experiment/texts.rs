//! `dataset.jsonl`: every item as it was put, one [`Item`] a line in the order of the plan. The plan has the file's sha256.
//! What an item's line says of its gold is held against it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use super::contents::Contents;
use super::error::{Defect, RunError};
use super::line::{self, Hasher};
use super::link::Link;
use super::plan::DatasetPlan;
use crate::data::Item;
use crate::digest;
use crate::record::ItemLine;

/// The file's name in the run directory.
pub const FILE: &str = "dataset.jsonl";

/// The bytes of dataset.jsonl.
///
/// # Errors
/// A text that would not read back equal.
pub fn to_lines(texts: &[Item]) -> Result<String, RunError> {
    let mut lines = String::new();
    for text in texts {
        let json = serde_json::to_string(text)
            .map_err(|error| RunError::unloggable(format_args!("item {}", text.id()), error))?;
        lines += &line::seal(&json[1..json.len() - 1], &Hasher::default()).0;
        lines.push('\n');
    }
    Ok(lines)
}

/// The lower-case hex sha256 over the bytes of dataset.jsonl.
pub fn sha256(texts: &[Item]) -> Result<String, RunError> {
    Ok(digest::sha256(to_lines(texts)?.as_bytes()))
}

/// Reads dataset.jsonl in the run directory and checks it against the plan: the texts by item.
pub(super) fn read(
    directory: &Path,
    plan: &DatasetPlan,
) -> Result<BTreeMap<String, Item>, RunError> {
    let path = directory.join(FILE);
    let file = line::read_file(&path)?;
    let mut texts = BTreeMap::new();
    let mut expected = plan.items.iter();
    let mut count = 0;
    let bad_line = |line, defect| RunError::BadLine { path: path.clone(), line, defect };
    for (index, line) in file.split_inclusive(|&byte| byte == b'\n').enumerate() {
        let checked = check(line, expected.next());
        let text = checked.map_err(|defect| bad_line(index + 1, defect))?;
        texts.insert(text.id().to_owned(), text);
        count = index + 1;
    }
    if let Some(item) = expected.next() {
        let told = format!("the text of item {item} is missing");
        return Err(bad_line(count + 1, Defect::Other(told)));
    }
    let found = digest::sha256(&file);
    if found != plan.items_sha256 {
        let told = format!("plan.toml says {}", plan.items_sha256);
        return Err(RunError::Changed { path, found, told });
    }
    Ok(texts)
}

fn check(line: &[u8], expected: Option<&String>) -> Result<Item, Defect> {
    let line = line.strip_suffix(b"\n").ok_or_else(Defect::torn)?;
    let opened = line::open(line, &Hasher::default())?;
    let text: Item = serde_json::from_slice(&opened.without_hash())
        .map_err(|error| Defect::no_record(&error))?;
    match expected {
        Some(item) if item == text.id() => Ok(text),
        _ => Err(Defect::Other(format!("the plan has no item {} here", text.id()))),
    }
}

/// Bytes of a value that an error shows: a letter, a yes or no.
const LONGEST: usize = 12;

/// Checks every outcome of a run against dataset.jsonl and against itself.
///
/// # Errors
/// The first line that contradicts them.
pub(super) fn check_outcomes(contents: &Contents) -> Result<(), RunError> {
    for (index, line) in contents.items.records.iter().enumerate() {
        let Some(text) = contents.texts.get(line.item()) else { continue };
        held_against(text, line).map_err(|defect| RunError::BadLine {
            path: contents.path.join(ItemLine::FILE),
            line: index + 1,
            defect,
        })?;
    }
    Ok(())
}

/// Whether a line is an outcome of the item with this text.
///
/// # Errors
/// The field that is otherwise.
fn held_against(text: &Item, line: &ItemLine) -> Result<(), Defect> {
    match (text, line) {
        (Item::Question(text), ItemLine::Answer(line)) => {
            same("gold", &line.gold, FILE, &text.gold.map(String::from))?;
            let correct = line.gold.as_ref().map(|gold| *gold == line.answer);
            same("correct", &line.correct, "its answer and gold", &correct)
        }
        (Item::Note(text), ItemLine::Note(line)) => same("gold", &line.gold, FILE, &text.gold),
        _ => {
            let kind = |is_note: bool| if is_note { "note" } else { "question" };
            let wanted = kind(matches!(text, Item::Note(_)));
            same("kind", &kind(line.note().is_some()), FILE, &wanted)
        }
    }
}

fn same<T: PartialEq + Serialize>(
    field: &'static str,
    found: &T,
    by: &'static str,
    expected: &T,
) -> Result<(), Defect> {
    if found == expected {
        return Ok(());
    }
    // A note's gold quotes the note, which no error does.
    let shown = |value: &T| {
        let json = serde_json::to_string(value).unwrap_or_default();
        if json.len() > LONGEST { format!("{} bytes of JSON", json.len()) } else { json }
    };
    let (found, expected) = (shown(found), shown(expected));
    Err(Defect::Other(format!("its {field} is {found}, and by {by} it is {expected}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Diagnosis;
    use crate::experiment::fixtures::{ITEMS, plan, texts};

    fn read_lines(lines: &str) -> Result<BTreeMap<String, Item>, RunError> {
        let out = tempfile::tempdir().unwrap();
        fs_err::write(out.path().join(FILE), lines).unwrap();
        read(out.path(), &plan().dataset)
    }

    #[test]
    fn texts_read_back_equal() {
        let written = texts(&ITEMS);
        let lines = to_lines(&written).unwrap();
        assert!(lines.starts_with("{\"schema\":1,\"kind\":\"question\",\"item\":\"q1\","));
        let read = read_lines(&lines).unwrap();
        assert_eq!(read.into_values().collect::<Vec<_>>(), written);
    }

    #[test]
    fn every_changed_line_is_named() {
        let lines = to_lines(&texts(&ITEMS)).unwrap();
        let refused = |lines: &str, line: usize, what: &str| {
            let error = read_lines(lines).unwrap_err();
            let told = error.to_string();
            assert!(told.contains(&format!("dataset.jsonl, line {line}: ")), "{told}");
            assert!(told.contains(what), "{told}");
            assert!(error.hint().is_some());
        };
        refused(&lines.replacen("q2?", "q2!", 1), 2, "the line was changed");
        refused(&lines.replacen("schema\":1", "schema\":9", 1), 1, "schema 9");
        refused(&lines[..lines.len() - 1], 3, "cut short");
        let by_line: Vec<&str> = lines.split_inclusive('\n').collect();
        refused(&by_line[..2].concat(), 3, "the text of item q3 is missing");
        refused(&[by_line[1], by_line[0], by_line[2]].concat(), 1, "item q2");
        refused(&[&by_line[..], &by_line[..1]].concat().concat(), 4, "item q1");
    }

    #[test]
    fn a_text_that_was_sealed_anew_is_found_by_the_plan() {
        let mut changed = texts(&ITEMS);
        let Item::Question(question) = &mut changed[1] else {
            panic!("a question");
        };
        question.question = "Another?".to_owned();
        let error = read_lines(&to_lines(&changed).unwrap()).unwrap_err();
        assert!(matches!(error, RunError::Changed { .. }), "{error}");
    }
}

#[cfg(test)]
mod outcome_tests {
    use crate::experiment::fixtures::{call, failed_item, item, plan, start, write_results};
    use crate::experiment::verify::{read_finished, verify};
    use crate::record::AnswerLine;

    /// What verify says of a run of one item with this outcome, all of whose sums are as they should be.
    fn told(outcome: AnswerLine) -> String {
        let out = tempfile::tempdir().unwrap();
        let mut plan = plan();
        (plan.runs, plan.dataset.items) = (1, vec!["q1".to_owned()]);
        let log = start(out.path(), &plan);
        log.call(call("q1", 0, "sym")).unwrap();
        log.item(outcome).unwrap();
        log.finish().unwrap();
        write_results(out.path(), 1).unwrap();
        let errors = [verify(out.path(), None).err(), read_finished(out.path()).err()];
        let [one, other] = errors.map(|error| error.map(|error| error.to_string()));
        assert_eq!(one, other);
        one.map_or_else(String::new, |told| told.replace(&format!("{}/", out.path().display()), ""))
    }

    #[test]
    fn a_line_that_contradicts_the_runs_own_files_is_no_outcome() {
        let right = item("q1", 0);
        assert_eq!(told(right.clone()), "");
        assert_eq!(told(failed_item("q1", 0)), "");
        let gold = Some("A".to_owned());
        let other_gold = AnswerLine { gold, correct: Some(false), ..right.clone() };
        assert_eq!(
            told(other_gold),
            "items.jsonl, line 1: its gold is \"A\", and by dataset.jsonl it is \"B\""
        );
        let none = AnswerLine { gold: None, correct: None, ..right.clone() };
        assert!(told(none).contains("its gold is null"));
        let long = AnswerLine { gold: Some("Mr Doe has fever".to_owned()), ..right.clone() };
        assert!(told(long).contains("its gold is 18 bytes of JSON, and by"));
        let wrong = AnswerLine { answer: "A".to_owned(), ..right };
        assert_eq!(
            told(wrong),
            "items.jsonl, line 1: its correct is true, and by its answer and gold it is false"
        );
    }
}
