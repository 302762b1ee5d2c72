//! What an item's line says of its gold, held against the item's text, and whether it is right by both.

use serde::Serialize;

use super::contents::Contents;
use super::error::{Defect, RunError};
use super::link::Link;
use super::texts;
use crate::record::{ItemLine, ItemText};

/// Bytes of a value that an error shows: a letter, a yes or no.
const LONGEST: usize = 12;

/// Checks every outcome of a run against dataset.jsonl and against itself.
///
/// # Errors
/// The first line that contradicts them.
pub fn check(contents: &Contents) -> Result<(), RunError> {
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
fn held_against(text: &ItemText, line: &ItemLine) -> Result<(), Defect> {
    match (text, line) {
        (ItemText::Question(text), ItemLine::Answer(line)) => {
            same("gold", &line.gold, texts::FILE, &text.answer)?;
            let correct = line.gold.as_ref().map(|gold| *gold == line.answer);
            same("correct", &line.correct, "its answer and gold", &correct)
        }
        (ItemText::Note(text), ItemLine::Note(line)) => {
            same("gold", &line.gold, texts::FILE, &text.gold)
        }
        _ => {
            let kind = |is_note: bool| if is_note { "note" } else { "question" };
            let wanted = kind(matches!(text, ItemText::Note(_)));
            same("kind", &kind(line.note().is_some()), texts::FILE, &wanted)
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
    Err(Defect::Outcome { field, found: shown(found), by, expected: shown(expected) })
}

#[cfg(test)]
mod tests {
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
