//! Parses the few words that a stage asks for (a keyword, specialties): in a JSON field, a list, or alone.

use serde_json::Value;

use crate::record::{FinishReason, Parse};
use crate::systems::reading;
use crate::systems::reading::correction::without_number;
use crate::systems::reading::reply::Fields;
use crate::systems::reading::words::{list_items, named_item, parts};

/// Parses words of the field `key`, `most` of them at most: of an object, a labelled line, a list, or a text of nothing else.
pub fn words(
    text: &str,
    finish_reason: FinishReason,
    key: &str,
    most: usize,
) -> (Vec<String>, Parse) {
    let reply = Fields::read(text, finish_reason, key);
    let found: Vec<String> = match reply.get(key) {
        Value::Array(list) => list.iter().map(item).collect(),
        // Lists by kinds.
        Value::Object(kinds) if most > 1 => kinds.values().flat_map(items).collect(),
        Value::Null if reply.parse != Parse::Fallback => Vec::new(),
        Value::Null => unkeyed(&reply.text, most),
        Value::String(line) if most > 1 && reply.parse == Parse::Fallback => {
            parts(line).into_iter().map(str::to_owned).collect()
        }
        other => vec![reading::text(other)],
    };
    let around = |c: char| c.is_whitespace() || "\"“”*`.".contains(c);
    let words = found.iter().map(|word| word.trim_matches(around).to_owned());
    let words = words.filter(|word| !word.is_empty() && !reading::is_nothing(word));
    // A refusal's words are no words of the note.
    let is_refusal = reply.parse == Parse::Fallback && reading::refuses(text);
    let words: Vec<String> = if is_refusal { Vec::new() } else { words.take(most).collect() };
    let parse = reply.parse.if_read(!words.is_empty());
    (words, parse)
}

/// An element of a list without its number; of an object with what was wrong and what is right, the latter.
fn item(value: &Value) -> String {
    let right = ["corrected", "correct", "correction", "replacement"].map(|key| value.get(key));
    let right = right.into_iter().flatten().next();
    let text = reading::text(right.unwrap_or(value));
    without_number(&text).to_owned()
}

fn items(value: &Value) -> Vec<String> {
    match value {
        Value::Array(list) => list.iter().map(item).collect(),
        other => vec![item(other)],
    }
}

/// The items of a list; of a single line, what it quotes, or all of it.
fn unkeyed(text: &str, most: usize) -> Vec<String> {
    let items: Vec<String> =
        list_items(text).into_iter().map(|item| named_item(item).to_owned()).collect();
    if most > 1 && !items.is_empty() {
        return items;
    }
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let (Some(line), None) = (lines.next(), lines.next()) else { return Vec::new() };
    let quoted: Vec<String> =
        line.split(['"', '“', '”']).skip(1).step_by(2).map(str::to_owned).collect();
    if quoted.len() == 1 || !quoted.is_empty() && most > 1 { quoted } else { vec![line.to_owned()] }
}
