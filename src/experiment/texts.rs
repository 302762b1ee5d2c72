//! `dataset.jsonl`: every item as it was put, one [`Item`] a line in the order of the plan. The plan has the file's sha256.
//! What an item's line says of its gold is held against it.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::contents::Contents;
use super::error::{Defect, RunError};
use super::line::{self, Hasher};
use super::link::Link;
use super::plan::DatasetPlan;
use crate::appended;
use crate::data::Item;
use crate::digest;
use crate::record::ItemLine;

/// The file's name in the run directory.
pub const FILE: &str = "dataset.jsonl";

/// The bytes of dataset.jsonl.
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
    let found = digest::sha256(&file);
    if found != plan.items_sha256 {
        let told = format!("plan.toml says {}", plan.items_sha256);
        return Err(RunError::Changed { path, found, told });
    }
    let mut texts = BTreeMap::new();
    for (number, line) in (1..).zip(appended::lines(&file)) {
        let text = serde_json::from_slice(line).and_then(|mut fields: Map<String, Value>| {
            for around in ["schema", "hash"] {
                fields.shift_remove(around);
            }
            serde_json::from_value::<Item>(fields.into())
        });
        let text = text.map_err(|error| RunError::BadLine {
            path: path.clone(),
            line: number,
            defect: Defect::no_record(&error),
        })?;
        texts.insert(text.id().to_owned(), text);
    }
    match plan.items.iter().find(|item| !texts.contains_key(*item)) {
        None => Ok(texts),
        Some(item) => {
            let reason = format!("the text of item {item} is missing");
            Err(RunError::Unreadable { path, reason })
        }
    }
}

/// Checks every outcome of a run against dataset.jsonl and against itself.
pub(super) fn check_outcomes(contents: &Contents) -> Result<(), RunError> {
    for (number, line) in (1..).zip(&contents.items.records) {
        let Some(text) = contents.texts.get(line.item()) else { continue };
        if let Some(told) = contradiction(text, line) {
            let path = contents.path.join(ItemLine::FILE);
            let defect = Defect::Other(told.to_owned());
            return Err(RunError::BadLine { path, line: number, defect });
        }
    }
    Ok(())
}

/// Why a line is no outcome of the item with this text, where it is none.
fn contradiction(text: &Item, line: &ItemLine) -> Option<&'static str> {
    let (has_gold, is_consistent) = match (text, line) {
        (Item::Question(text), ItemLine::Answer(line)) => {
            let correct = line.gold.as_ref().map(|gold| *gold == line.answer);
            (line.gold == text.gold.map(String::from), line.correct == correct)
        }
        (Item::Note(text), ItemLine::Note(line)) => (line.gold == text.gold, true),
        _ => return Some("its kind is not its item's, by dataset.jsonl"),
    };
    match (has_gold, is_consistent) {
        (false, _) => Some("its gold is not its item's, by dataset.jsonl"),
        (_, false) => Some("its `correct` is not what its answer and its gold say"),
        _ => None,
    }
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
    fn every_change_is_found() {
        let lines = to_lines(&texts(&ITEMS)).unwrap();
        let by_line: Vec<&str> = lines.split_inclusive('\n').collect();
        for changed in [
            lines.replacen("q2?", "q2!", 1),
            lines.replacen("schema\":1", "schema\":9", 1),
            lines[..lines.len() - 1].to_owned(),
            by_line[..2].concat(),
            [by_line[1], by_line[0], by_line[2]].concat(),
        ] {
            let error = read_lines(&changed).unwrap_err();
            assert!(error.to_string().contains("dataset.jsonl was changed"), "{error}");
            assert!(error.hint().is_some());
        }
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
        let none = AnswerLine { gold: None, correct: None, ..right.clone() };
        for other in [other_gold, none] {
            let expected = "items.jsonl, line 1: its gold is not its item's, by dataset.jsonl";
            assert_eq!(told(other), expected);
        }
        let wrong = AnswerLine { answer: "A".to_owned(), ..right };
        assert_eq!(
            told(wrong),
            "items.jsonl, line 1: its `correct` is not what its answer and its gold say"
        );
    }
}
