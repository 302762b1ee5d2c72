//! The JSON object that a completion holds: as it stands, else repaired; words are never deleted.

use serde_json::Value;

use crate::record::{FinishReason, Parse};

/// Nesting beyond which brackets are not worth closing; the JSON reader stops there too.
const MAX_DEPTH: usize = 128;

/// The record in a completion, by what `record` makes of a JSON value; `None` where there is none, and for every completion cut
/// short by `max_tokens`.
///
/// A `<think>` section is cut first. What remains is [`Parse::Ok`] where all of it is one record; [`Parse::Repaired`] where a record
/// stands in it, perhaps fenced, with trailing commas or its last brackets open.
pub fn read<T>(
    text: &str,
    finish_reason: FinishReason,
    record: impl Fn(&Value) -> Option<T>,
) -> Option<(T, Parse)> {
    if finish_reason == FinishReason::Length {
        return None;
    }
    let text = without_thinking(text).trim();
    if let Some(record) = parsed(text).and_then(|value| record(&value)) {
        return Some((record, Parse::Ok));
    }
    repair(text, record).map(|record| (record, Parse::Repaired))
}

/// What follows the `<think>` section. One that is never closed leaves nothing; one that is only
/// closed was opened by the chat template.
pub fn without_thinking(text: &str) -> &str {
    let trimmed = text.trim_start();
    match (trimmed.split_once("</think>"), trimmed.chars().next()) {
        (_, Some('{')) => trimmed,
        (Some((_, after)), _) => after,
        (None, _) if trimmed.starts_with("<think>") => "",
        (None, _) => trimmed,
    }
}

/// A value as text: lists and the values of objects joined by `; `, nothing for `null`.
pub fn text(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Array(list) => list.iter().map(text).collect::<Vec<_>>().join("; "),
        Value::Object(object) => object.values().map(text).collect::<Vec<_>>().join("; "),
        other => other.to_string(),
    }
}

/// A number, also one that is written as a text; NaN is none.
pub fn number(value: &Value) -> Option<f64> {
    let number = match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.trim().parse().ok(),
        _ => None,
    };
    number.filter(|number: &f64| !number.is_nan())
}

/// The first object in the text that is a record once its brackets are balanced.
fn repair<T>(text: &str, record: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (object, after) = balance(&rest[open..]);
        if let Some(record) = parsed(&object).and_then(|value| record(&value)) {
            return Some(record);
        }
        rest = after;
    }
    None
}

fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(text).ok()
}

/// The object that `text` begins with, without trailing commas and with what it leaves open closed,
/// and what follows it.
fn balance(text: &str) -> (String, &str) {
    let mut object = String::new();
    let mut closers = Vec::new();
    let (mut in_string, mut escaped) = (false, false);
    for (at, c) in text.char_indices() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            object.push(c);
            continue;
        }
        match c {
            '"' => in_string = true,
            '{' => closers.push('}'),
            '[' => closers.push(']'),
            '}' | ']' => {
                drop_trailing_comma(&mut object);
                // What was opened since and never closed is closed here.
                if let Some(opened) = closers.iter().rposition(|closer| *closer == c) {
                    object.extend(closers.drain(opened..).skip(1).rev());
                }
            }
            _ => {}
        }
        object.push(c);
        if closers.is_empty() || closers.len() > MAX_DEPTH {
            return (object, &text[at + c.len_utf8()..]);
        }
    }
    if in_string {
        object.push('"');
    }
    drop_trailing_comma(&mut object);
    object.extend(closers.into_iter().rev());
    (object, "")
}

fn drop_trailing_comma(object: &mut String) {
    let kept = object.trim_end_matches(|c: char| c == ',' || c.is_whitespace()).len();
    object.truncate(kept);
}
