//! The record that a reply holds: as it stands (exact), else as near to JSON as models write it (repaired), else in lines (labelled).

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::{json, said};
use crate::record::{FinishReason, Parse};

/// The fields of an object, by [`plain_key`].
pub type Object = Map<String, Value>;

/// How deep a record may lie in objects around it.
const MAX_AROUND: usize = 3;

/// The record in a reply, by what `record` makes of an object whose keys are in lower case; `None` where there is none.
///
/// Thinking is cut first. What remains is [`Parse::Ok`] where all of it is one record, and [`Parse::Repaired`] where a record stands in
/// it: fenced, near to JSON, with words around or its end cut off. Several that decide differently are none.
pub fn read<T>(
    text: &str,
    finish_reason: FinishReason,
    record: impl Fn(&Object) -> Option<T>,
) -> Option<(T, Parse)> {
    let text = said(text);
    let whole = if finish_reason == FinishReason::Length { Parse::Repaired } else { Parse::Ok };
    let found = |text: &str| Some((last(text, &record)?, Parse::Repaired));
    // An object in a string has its quotes escaped.
    let escaped = || found(&text.replace("\\\"", "\""));
    exact(text, &record).map(|found| (found, whole)).or_else(|| found(text)).or_else(escaped)
}

/// The same, else [`Parse::Fallback`] by what `record` makes of the reply's lines.
pub fn read_or_lines<T>(
    text: &str,
    finish_reason: FinishReason,
    record: impl Fn(&Object) -> Option<T>,
) -> Option<(T, Parse)> {
    let of_lines = || Some((record(&labelled(said(text)))?, Parse::Fallback));
    read(text, finish_reason, &record).or_else(of_lines)
}

/// The record that a whole text is.
pub(super) fn exact<T>(text: &str, record: &impl Fn(&Object) -> Option<T>) -> Option<T> {
    record(&lower(&serde_json::from_str(text).ok()?))
}

/// What stands before the first colon of each line, by [`plain_key`], and what after; of equal keys the last counts. Quotes, bullets and
/// asterisks around either are no part of it.
pub fn labelled(text: &str) -> Object {
    let around = |c: char| c.is_whitespace() || matches!(c, '"' | ',' | '*');
    let pairs = text.lines().filter_map(|line| line.split_once([':', '：']));
    let pairs = pairs.map(|(before, after)| {
        let key = before.trim_matches(|c: char| !c.is_alphanumeric());
        (plain_key(key), Value::from(after.trim_matches(around)))
    });
    pairs.collect()
}

/// The record of a text's objects; of several the last, where they decide alike.
fn last<T>(text: &str, record: &impl Fn(&Object) -> Option<T>) -> Option<T> {
    /// Parts of the keys of fields that decide.
    const DECIDES: [&str; 5] = ["answer", "agree", "error", "flag", "sentence_id"];
    let records = json::objects(text).into_iter().filter_map(|found| {
        let fields = answer_alone(&found.object).unwrap_or(found.object);
        let own = fields.iter().map(|(key, value)| (key.to_lowercase(), super::text(value)));
        let decides = own.filter(|(key, _)| DECIDES.iter().any(|part| key.contains(part)));
        let decides: BTreeMap<_, _> = decides.collect();
        Some((decides, within(&fields, record, 0)?))
    });
    let mut records: Vec<_> = records.collect();
    let is_one = records.windows(2).all(|pair| pair[0].0 == pair[1].0);
    records.pop().filter(|_| is_one).map(|(_, record)| record)
}

/// The record that an object is, or that stands in it; an empty one is none.
fn within<T>(object: &Object, record: &impl Fn(&Object) -> Option<T>, depth: usize) -> Option<T> {
    let own = Some(lower(object)).filter(|fields| !fields.is_empty());
    let mut inner = object.values().filter(|_| depth < MAX_AROUND).filter_map(Value::as_object);
    own.and_then(|own| record(&own))
        .or_else(|| inner.find_map(|one| within(one, record, depth + 1)))
}

/// An object that is an answer under another name, with no more than reasons beside it: `{"option": "C: …"}`, or `{"D": "…"}`.
fn answer_alone(object: &Object) -> Option<Object> {
    const NAMES: [&str; 4] = ["option", "choice", "letter", "selected_option"];
    let is_beside = |key: &str| is_reasons(key) || plain_key(key) == "confidence";
    let mut others = object.iter().filter(|(key, _)| !is_beside(key));
    let (key, text) = others.next().filter(|_| others.next().is_none())?;
    let text = text.as_str()?;
    // `{"D": "E"}` names two.
    let is_other = text.trim().parse().is_ok_and(char::is_alphabetic) && text.trim() != key;
    let answer = match key.as_bytes() {
        [b'A'..=b'J'] if is_other => return None,
        [b'A'..=b'J'] => format!("{key}: {text}"),
        _ if NAMES.contains(&plain_key(key).as_str()) => text.to_owned(),
        _ => return None,
    };
    let answer = ("answer".to_owned(), answer.into());
    Some(object.clone().into_iter().chain([answer]).collect())
}

fn lower(fields: &Object) -> Object {
    fields.iter().map(|(key, value)| (plain_key(key), value.clone())).collect()
}

/// A key in lower case, its words joined by `_`, and of several names of an answer or a confidence the shortest.
pub fn plain_key(key: &str) -> String {
    let key = key.trim().to_lowercase().replace([' ', '-'], "_");
    match key.as_str() {
        "final_answer" | "correct_answer" | "answer_choice" | "best_answer" => "answer".to_owned(),
        "confidence_level" | "confidence_score" => "confidence".to_owned(),
        _ => key,
    }
}

/// Whether a field holds the reasons of an answer.
pub fn is_reasons(key: &str) -> bool {
    const NAMES: &str = "reasoning reason explanation rationale thought analysis cot";
    NAMES.split(' ').any(|name| name == plain_key(key))
}

/// A reply without the objects in it.
pub fn prose(text: &str) -> String {
    let (mut prose, mut end) = (String::new(), 0);
    for found in json::objects(text).iter().filter(|found| !found.object.is_empty()) {
        prose += &text[end..found.place.start];
        end = found.place.end;
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
        assert_eq!(answer(r#"{"option": "B"} or {"choice": "B"}"#), repaired("B"));
        for other in [
            r#"{"option": "A", "pros": "x", "cons": "y"}"#,
            r#"{"D": 4}"#,
            r#"{"D": "E"}"#,
            r#"{"A": "x", "B": "y"}"#,
            r#"{"K": "x"}"#,
            r#"{"option": "A", "reason": "r"} {"option": "B", "reason": "r"}"#,
            r#"{"A": "x", "reason": "r"} {"D": "y", "reason": "r"}"#,
        ] {
            assert_eq!(answer(other), None, "{other}");
        }
    }

    #[test]
    fn lines_count_where_there_is_no_record() {
        let answer = |text: &str| {
            read_or_lines(text, FinishReason::Stop, |one| one.get("answer").map(super::super::text))
        };
        let said = |parse| Some(("B".to_owned(), parse));
        assert_eq!(answer("- **Answer**: \"B\",\nno more"), said(Parse::Fallback));
        assert_eq!(answer("Answer：B"), said(Parse::Fallback));
        assert_eq!(answer("Answer: A\n{\"answer\": \"B\"}"), said(Parse::Repaired));
        assert_eq!(answer("B"), None);
    }

    #[test]
    fn prose_is_what_stands_around_objects() {
        assert_eq!(prose(r#"So {"answer": "B"} it is"#), "So  it is");
        assert_eq!(prose(r"\boxed{E}"), r"\boxed{E}");
    }
}
