//! Finds an answer's fields by their labels as models write them: a line each, `=` for a colon, all on one line, rows of a table.

use serde_json::{Map, Value};

use crate::systems::file::schema::{FieldOf, Is};
use crate::systems::reading;

/// A label normalised for comparison: lower case, words joined by `_`.
pub fn plain(label: &str) -> String {
    reading::plain(label).trim().replace(' ', "_")
}

/// Names that models give a field in place of its own.
pub fn other_names(field: &FieldOf) -> &'static [&'static str] {
    match field.is {
        Is::Flag if ["Yes", "yes"].contains(&field.word(false)) => &["is_correct", "correct"],
        Is::Flag => &["error_flag", "is_error", "has_error", "error", "flag", "error_detected"],
        Is::SentenceId => &[
            "error_sentence_id",
            "sentence_id",
            "incorrect_sentence_id",
            "sentence_number",
            "error_sentence_number",
            "error_id",
            "id",
        ],
        Is::Sentence => &["error_sentence", "incorrect_sentence", "wrong_sentence", "sentence"],
        Is::Correction => {
            &["corrected_sentence", "correction", "corrected", "revised_sentence", "corrected_text"]
        }
        _ => &["reason", "reasoning", "rationale", "explanation", "analysis", "reasons"],
    }
}

/// Labels of remarks that models add.
const EXPLAINS: [&str; 6] =
    ["reason", "reasoning", "rationale", "explanation", "justification", "note"];

/// The text after each known label at the start of a line, up to the next label; nothing where a label has two texts.
pub fn labelled(reply: &str, fields: &[FieldOf]) -> Map<String, Value> {
    let mut found: Map<String, Value> = Map::new();
    let mut open: Option<String> = None;
    for line in line_a_field(reply, fields).lines() {
        let cut = line.split_once([':', '：', '=']).map(|(label, value)| (plain(label), value));
        let is_known = |label: &str| {
            let mut fields = fields.iter();
            fields.any(|one| plain(&one.key) == label || other_names(one).contains(&label))
        };
        match cut {
            // Another answer, where it differs, leaves none.
            Some((label, value)) if is_known(&label) && found.contains_key(&label) => {
                if found[&label] == value.trim() { break } else { return Map::new() }
            }
            Some((label, value)) if is_known(&label) => {
                found.insert(label.clone(), value.trim().into());
                open = Some(label);
            }
            // An explanation is no part of the field before it.
            Some((label, _)) if EXPLAINS.contains(&label.as_str()) && !found.is_empty() => {
                open = None
            }
            // A blank line ends a field that has something.
            _ if line.trim().is_empty() => {
                open = open.filter(|label| found[label].as_str().is_some_and(str::is_empty));
            }
            _ => {
                let value = open.as_ref().and_then(|label| found.get_mut(label));
                if let Some(Value::String(value)) = value {
                    *value = format!("{value} {}", line.trim()).trim().to_owned();
                }
            }
        }
    }
    found
}

/// A reply with every label at the start of a line, also where all were on one line or in the rows of a table.
fn line_a_field(reply: &str, fields: &[FieldOf]) -> String {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim().trim_matches('|').split('|').map(str::trim).collect();
        match cells[..] {
            [label, value] if line.trim().starts_with('|') => format!("{label}: {value}"),
            _ => line.to_owned(),
        }
    };
    let text = reply.lines().map(row).collect::<Vec<_>>().join("\n");
    let keys = fields.iter().map(|field| &field.key);
    keys.fold(text, |text, key| text.replace(&format!(", {key}:"), &format!("\n{key}:")))
}
