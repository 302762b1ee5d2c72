//! The JSON record that a reply holds: as it stands, else as near to JSON as models write it.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{json, said};
use crate::record::{FinishReason, Parse};

/// How deep a record may lie in objects around it.
const MAX_AROUND: usize = 3;

/// The record in a reply, by what `record` makes of an object whose keys are in lower case; `None` where there is none.
///
/// Thinking is cut first. What remains is [`Parse::Ok`] where all of it is one record, and [`Parse::Repaired`] where a record stands in
/// it: fenced, near to JSON, with words around or its end cut off. Several that decide differently are none.
pub fn read<T>(
    text: &str,
    finish_reason: FinishReason,
    record: impl Fn(&Value) -> Option<T>,
) -> Option<(T, Parse)> {
    let text = said(text);
    let exact = serde_json::from_str::<Value>(text).ok();
    if let Some(found) =
        exact.as_ref().and_then(Value::as_object).and_then(|object| record(&lower(object)))
    {
        let parse = match finish_reason {
            FinishReason::Length => Parse::Repaired,
            _ => Parse::Ok,
        };
        return Some((found, parse));
    }
    let found = match exact {
        // An object in a string.
        Some(Value::String(inner)) => last(&inner, &record),
        _ => last(text, &record),
    };
    found
        .or_else(|| last(&text.replace("\\\"", "\""), &record))
        .map(|found| (found, Parse::Repaired))
}

/// The record of a text's objects; of several the last, where they decide alike.
fn last<T>(text: &str, record: &impl Fn(&Value) -> Option<T>) -> Option<T> {
    /// Parts of the keys of fields that decide.
    const DECIDES: [&str; 5] = ["answer", "agree", "error", "flag", "sentence_id"];
    let objects = json::objects(text);
    let records = objects.iter().filter_map(|found| {
        let own = found.object.iter().map(|(key, value)| (key.to_lowercase(), super::text(value)));
        let decides = own.filter(|(key, _)| DECIDES.iter().any(|part| key.contains(part)));
        Some((decides.collect::<BTreeMap<_, _>>(), within(&found.object, record, 0)?))
    });
    let mut records: Vec<_> = records.collect();
    let is_one = records.windows(2).all(|pair| pair[0].0 == pair[1].0);
    records.pop().filter(|_| is_one).map(|(_, record)| record)
}

/// The record that an object is, or that stands in it.
fn within<T>(
    object: &Map<String, Value>,
    record: &impl Fn(&Value) -> Option<T>,
    depth: usize,
) -> Option<T> {
    if object.is_empty() {
        return None;
    }
    let own = record(&lower(object)).or_else(|| {
        let answer = (depth == 0).then(|| answer_alone(object))??;
        record(&Value::Object(answer))
    });
    own.or_else(|| {
        let mut inner = object.values().filter_map(Value::as_object);
        (depth < MAX_AROUND).then(|| inner.find_map(|inner| within(inner, record, depth + 1)))?
    })
}

/// An object that is an answer under another name: `{"option": "C: …"}` with no more than reasons beside it, or `{"D": "…"}`.
fn answer_alone(object: &Map<String, Value>) -> Option<Map<String, Value>> {
    const NAMES: [&str; 4] = ["option", "choice", "letter", "selected_option"];
    const BESIDE: [&str; 7] =
        ["explanation", "reasoning", "reason", "rationale", "confidence", "thought", "cot"];
    let lowered = lower(object);
    let lowered = lowered.as_object()?;
    let name = lowered.keys().find(|key| NAMES.contains(&key.as_str()));
    if let Some(name) = name {
        let others = lowered.keys().filter(|key| *key != name);
        let is_alone = others.clone().all(|key| BESIDE.contains(&key.as_str()));
        let mut fields = lowered.clone();
        let answer = fields.shift_remove(name).filter(|answer| is_alone && answer.is_string())?;
        fields.insert("answer".to_owned(), answer);
        return Some(fields);
    }
    let mut pairs = object.iter();
    let (letter, text) = pairs.next().filter(|_| pairs.next().is_none())?;
    let is_letter = matches!(letter.as_bytes(), [b'A'..=b'J']);
    let answer = format!("{letter}: {}", text.as_str().filter(|_| is_letter)?);
    Some(Map::from_iter([("answer".to_owned(), answer.into())]))
}

/// An object with its keys in lower case, words joined by `_`.
fn lower(object: &Map<String, Value>) -> Value {
    let key = |key: &String| match key.trim().to_lowercase().replace([' ', '-'], "_").as_str() {
        "final_answer" | "correct_answer" | "answer_choice" | "best_answer" => "answer".to_owned(),
        "confidence_level" | "confidence_score" => "confidence".to_owned(),
        key => key.to_owned(),
    };
    Value::Object(object.iter().map(|(name, value)| (key(name), value.clone())).collect())
}

/// A reply without the objects in it.
pub fn prose(text: &str) -> String {
    let mut prose = String::new();
    let mut end = 0;
    for found in json::objects(text) {
        if !found.object.is_empty() {
            prose += &text[end..found.place.start];
            end = found.place.end;
        }
    }
    prose + &text[end..]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(text: &str) -> Option<(String, Parse)> {
        read(text, FinishReason::Stop, |value| value.get("answer").map(super::super::text))
    }

    #[test]
    fn a_record_counts_wherever_it_stands() {
        let repaired = |letter: &str| Some((letter.to_owned(), Parse::Repaired));
        assert_eq!(answer(r#"{"Answer": "B"}"#), Some(("B".to_owned(), Parse::Ok)));
        assert_eq!(answer(r#"{"answer": "A"} No: {"answer": "B"}"#), None);
        assert_eq!(answer(r#"{"answer": "B", "x": 1} So: {"answer": "B"}"#), repaired("B"));
        assert_eq!(answer(r#"{"response": {"final answer": "B"}}"#), repaired("B"));
        assert_eq!(answer(r#""{\"answer\": \"B\"}""#), repaired("B"));
        assert_eq!(answer(r#"{\"answer\": \"B\"}"#), repaired("B"));
        assert_eq!(answer(r#"{"explanation": "B"}"#), None);
        let whole = r#"{"answer": "B"}"#;
        let cut = read(whole, FinishReason::Length, |value| value.get("answer").cloned());
        assert_eq!(cut.unwrap().1, Parse::Repaired);
    }

    #[test]
    fn an_answer_under_another_name_is_one() {
        let repaired = |text: &str| Some((text.to_owned(), Parse::Repaired));
        assert_eq!(answer(r#"Here: {"option": "C: heparin"}"#), repaired("C: heparin"));
        assert_eq!(answer(r#"{"D": "aspirin"} it is"#), repaired("D: aspirin"));
        assert_eq!(answer(r#"So {"choice": "B", "reason": "r"}"#), repaired("B"));
        for other in [
            r#"{"option": "A", "pros": "x", "cons": "y"}"#,
            r#"{"D": 4}"#,
            r#"{"A": "x", "B": "y"}"#,
            r#"{"K": "x"}"#,
        ] {
            assert_eq!(answer(other), None, "{other}");
        }
    }

    #[test]
    fn prose_is_what_stands_around_objects() {
        assert_eq!(prose(r#"So {"answer": "B"} it is"#), "So  it is");
        assert_eq!(prose(r"\boxed{E}"), r"\boxed{E}");
    }
}
