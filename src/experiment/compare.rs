//! Whether two runs are equal: the same calls, each once by its key, and the same items.
//!
//! Equal runs have equal digests. Not compared are, of every line, `seq`, `prev` and `hash`, of a call `elapsed_ms` and `usage.cached_tokens`, of a search `took` and
//! `cached`. Of an item that was tried again only the last line counts.
//! Where two JSON values differ is the dotted path of each differing field, with both values.

use std::collections::BTreeMap;
use std::fmt;

use itertools::{EitherOrBoth, Itertools};
use serde::Serialize;
use serde_json::{Map, Value};

use super::chain::by_key;
use super::contents::Contents;
use super::error::RunError;
use super::link::Link;
use crate::digest::{Sum, sha256};

/// The sum by which runs are equal, in lower-case hex: of the sum of dataset.jsonl, then of all searches, calls and items, each log in the
/// order of its keys, a line each as compact JSON without the fields that are not compared.
pub fn digest(contents: &Contents) -> Result<String, RunError> {
    let mut sum = Sum::default();
    sum.update(contents.plan.dataset.items_sha256.as_bytes());
    sum.update(b"\n");
    add(&mut sum, &by_key(&contents.searches.records))?;
    add(&mut sum, &by_key(&contents.calls.records))?;
    add(&mut sum, &contents.outcomes())?;
    Ok(sum.finish())
}

fn add<R: Link>(sum: &mut Sum, lines: &BTreeMap<R::Key, &R>) -> Result<(), RunError> {
    for record in lines.values() {
        sum.update(format!("{}\n", comparable(*record)?).as_bytes());
    }
    Ok(())
}

/// The sum by which the runs of a recipe are equal: of the sorted lines `CELL DIGEST` of its cells, called by their paths in its folder.
pub fn digest_of_cells(mut lines: Vec<String>) -> String {
    lines.sort();
    sha256(lines.join("\n"))
}

/// The fields of a line that are equal in equal runs.
fn comparable<R: Link>(record: &R) -> Result<Value, RunError> {
    let mut fields = as_json(record).map_err(|error| RunError::unloggable(record.key(), error))?;
    if let Value::Object(fields) = &mut fields {
        for name in ["seq", "elapsed_ms", "took", "cached", "prev", "hash"] {
            fields.shift_remove(name);
        }
        if let Some(Value::Object(usage)) = fields.get_mut("usage") {
            usage.shift_remove("cached_tokens");
        }
    }
    Ok(fields)
}

/// The differences between the lines of two logs, by their keys: of each the fields in which they differ, or what is to be said of a line
/// that one of them lacks.
pub(super) fn compare_all<R: Link>(
    left: &BTreeMap<R::Key, &R>,
    right: &BTreeMap<R::Key, &R>,
    [only_left, only_right]: [&str; 2],
) -> Result<Vec<String>, RunError> {
    let mut found = Vec::new();
    for pair in left.iter().merge_join_by(right, |(one, _), (other, _)| one.cmp(other)) {
        match pair {
            EitherOrBoth::Both((key, a), (_, b)) => {
                let fields = differences(&comparable(*a)?, &comparable(*b)?).into_iter();
                found.extend(fields.map(|field| format!("{key}: {field}")));
            }
            EitherOrBoth::Left((key, _)) => found.push(format!("{key}: {only_left}")),
            EitherOrBoth::Right((key, _)) => found.push(format!("{key}: {only_right}")),
        }
    }
    Ok(found)
}

/// Characters of a value that are shown, and of them those before the first difference.
const SHOWN: usize = 60;
const BEFORE: usize = 20;

/// What is shown of a field that is not there.
pub const ABSENT: &str = "absent";

/// One differing field.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FieldDifference {
    /// As in `messages[1].content`.
    pub field: String,
    /// The values as JSON, long ones cut around the first difference; `absent` where there is none.
    pub left: String,
    pub right: String,
}

impl fmt::Display for FieldDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {} against {}", self.field, self.left, self.right)
    }
}

/// The value as its JSON text reads back: an f32 keeps its short spelling, which `to_value` would widen.
pub fn as_json<T: Serialize>(value: &T) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&serde_json::to_string(value)?)
}

/// Every differing field, in the left value's order, and then those that only the right one has. A list of scalars is one field, an object
/// without any none.
pub fn differences(left: &Value, right: &Value) -> Vec<FieldDifference> {
    if left == right {
        return Vec::new();
    }
    let [left, right] = [left, right].map(|value| {
        let mut fields = Map::new();
        flatten(String::new(), value, &mut fields);
        fields
    });
    let added = right.keys().filter(|field| !left.contains_key(*field));
    let differing = left.keys().chain(added).filter(|field| left.get(*field) != right.get(*field));
    let shown = differing.map(|field| {
        let (left, right) = shorten(&show(left.get(field)), &show(right.get(field)));
        FieldDifference { field: field.clone(), left, right }
    });
    shown.collect()
}

/// The fields of a value by their paths.
fn flatten(path: String, value: &Value, fields: &mut Map<String, Value>) {
    let is_scalar = |value: &Value| !(value.is_object() || value.is_array());
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                let own = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(own, member, fields);
            }
        }
        Value::Array(entries) if !entries.iter().all(is_scalar) => {
            for (place, entry) in entries.iter().enumerate() {
                flatten(format!("{path}[{place}]"), entry, fields);
            }
        }
        _ => {
            fields.insert(path, value.clone());
        }
    }
}

fn show(value: Option<&Value>) -> String {
    value.map_or_else(|| ABSENT.to_owned(), Value::to_string)
}

/// Both texts cut to `SHOWN` characters around their first difference.
fn shorten(left: &str, right: &str) -> (String, String) {
    let common = left.chars().zip(right.chars()).take_while(|(a, b)| a == b).count();
    let start = common.saturating_sub(BEFORE);
    let cut = |text: &str| {
        let shown: String = text.chars().skip(start).take(SHOWN).collect();
        let head = if start > 0 { "…" } else { "" };
        let tail = if text.chars().count() > start + SHOWN { "…" } else { "" };
        format!("{head}{shown}{tail}")
    };
    (cut(left), cut(right))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::experiment::fixtures::{
        all_differences, call, failed_item, item, plan, start, write_finished,
    };
    use crate::record::{AnswerLine, CallLine};

    fn write(path: &Path, calls: &[CallLine], items: &[AnswerLine]) {
        let log = start(path, &plan());
        for record in calls {
            log.call(record.clone()).unwrap();
        }
        for record in items {
            log.item(record.clone()).unwrap();
        }
        log.finish().unwrap();
    }

    fn digest_of(path: &Path) -> String {
        digest(&Contents::read(path).unwrap()).unwrap()
    }

    fn compare_with(calls: &[CallLine], items: &[AnswerLine]) -> Vec<String> {
        let scratch = tempfile::tempdir().unwrap();
        let (left, right) = (scratch.path().join("left"), scratch.path().join("right"));
        let both = [call("q1", 0, "sym"), call("q1", 0, "ddx")];
        write(&left, &both, &[item("q1", 0), item("q2", 0)]);
        write(&right, calls, items);
        let found = all_differences(&left, &right);
        assert_eq!(found.is_empty(), digest_of(&left) == digest_of(&right), "{found:?}");
        found
    }

    #[test]
    fn a_run_equals_itself() {
        let out = tempfile::tempdir().unwrap();
        write_finished(out.path());
        assert_eq!(all_differences(out.path(), out.path()), [""; 0]);
    }

    #[test]
    fn order_time_and_cache_do_not_count() {
        let mut late = call("q1", 0, "sym");
        late.elapsed_ms = 99;
        late.usage.cached_tokens = 0;
        let calls = [call("q1", 0, "ddx"), late];
        let items = [failed_item("q2", 0), item("q1", 0), item("q2", 0)];
        assert_eq!(compare_with(&calls, &items), [""; 0]);
    }

    /// Worked out by hand, as docs/files.md says it: nothing but JSON and SHA-256 is needed.
    #[test]
    fn the_digest_is_of_the_lines_in_the_order_of_their_keys() {
        let out = tempfile::tempdir().unwrap();
        write(out.path(), &[call("q1", 0, "sym"), call("q1", 0, "ddx")], &[item("q1", 0)]);
        let line = |text: &str| {
            let mut line: serde_json::Map<String, Value> = serde_json::from_str(text).unwrap();
            for field in ["schema", "seq", "elapsed_ms", "prev", "hash"] {
                line.shift_remove(field);
            }
            if let Some(usage) = line.get_mut("usage") {
                usage.as_object_mut().unwrap().shift_remove("cached_tokens");
            }
            Value::from(line).to_string()
        };
        let log = |name: &str| fs_err::read_to_string(out.path().join(name)).unwrap();
        let (calls, items) = (log("calls.jsonl"), log("items.jsonl"));
        let [sym, ddx] = calls.lines().map(line).collect::<Vec<_>>().try_into().unwrap();
        let lines = [sha256(log("dataset.jsonl")), ddx, sym, line(&items)];
        assert_eq!(digest_of(out.path()), sha256(lines.join("\n") + "\n"));
        let cells = |lines: [&str; 2]| digest_of_cells(lines.map(str::to_owned).to_vec());
        assert_eq!(cells(["cells/b 2", "cells/a 1"]), sha256("cells/a 1\ncells/b 2"));
    }

    #[test]
    fn every_other_field_counts() {
        let mut changed = call("q1", 0, "sym");
        changed.text = "{\"answer\":\"C\"}".to_owned();
        changed.usage.forced_tokens = 7;
        changed.sampling.temperature = Some(0.7);
        let mut wrong = item("q1", 0);
        wrong.rounds[0].weights[1] = 0.3;
        let found = compare_with(&[changed, call("q1", 0, "guide")], &[wrong, item("q3", 0)]);
        let sym = "call initial of sym, round 0, sample 0, item q1 of medqa, run 0";
        let expected = [
            "call initial of ddx, round 0, sample 0, item q1 of medqa, run 0: only in the first run",
            "call initial of guide, round 0, sample 0, item q1 of medqa, run 0: only in the second run",
            &format!("{sym}: sampling.temperature is 0.6 against 0.7"),
            &format!(
                "{sym}: text is \"{{\\\"answer\\\":\\\"B\\\"}}\" against \"{{\\\"answer\\\":\\\"C\\\"}}\""
            ),
            &format!("{sym}: usage.forced_tokens is 6 against 7"),
            "item q1 of medqa, run 0: rounds[0].weights is [0.7,0.1] against [0.7,0.3]",
            "item q2 of medqa, run 0: only in the first run",
            "item q3 of medqa, run 0: only in the second run",
        ];
        assert_eq!(found, expected);
    }
}

#[cfg(test)]
mod difference_tests {
    use serde_json::json;

    use super::*;

    fn shown(left: Value, right: Value) -> Vec<String> {
        differences(&left, &right).iter().map(FieldDifference::to_string).collect()
    }

    #[test]
    fn every_field_is_named_with_both_values() {
        let left =
            json!({"a": 1, "b": {"c": "x", "d": null}, "tokens": [1, 2, 3, 4], "only": true});
        let right = json!({"a": 1, "b": {"c": "y", "d": 0.6}, "tokens": [1, 5, 6], "new": []});
        assert_eq!(
            shown(left, right),
            [
                "b.c is \"x\" against \"y\"",
                "b.d is null against 0.6",
                "tokens is [1,2,3,4] against [1,5,6]",
                "only is true against absent",
                "new is absent against []",
            ]
        );
    }

    #[test]
    fn a_long_text_is_cut_around_the_first_difference() {
        let left = format!("{}ß{}", "a".repeat(100), "b".repeat(100));
        let right = format!("{}c", "a".repeat(100));
        assert_eq!(
            shown(json!({ "text": left }), json!({ "text": right })),
            [format!(
                "text is …{}ß{}… against …{}c\"",
                "a".repeat(20),
                "b".repeat(39),
                "a".repeat(20)
            )]
        );
    }

    #[test]
    fn lists_of_objects_give_every_member() {
        let left = json!({"panel": [{"dtype": "f32"}, {"dtype": "f32"}]});
        let right = json!({"panel": [{"dtype": "bf16"}, {"dtype": "bf16"}, {"dtype": "bf16"}]});
        assert_eq!(
            shown(left, right),
            [
                "panel[0].dtype is \"f32\" against \"bf16\"",
                "panel[1].dtype is \"f32\" against \"bf16\"",
                "panel[2].dtype is absent against \"bf16\"",
            ]
        );
    }
}
