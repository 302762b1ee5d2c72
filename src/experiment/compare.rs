//! Whether two runs are equal: the same calls, each once by its key, and the same items.
//!
//! Not compared are, of every line, `seq`, `prev` and `hash`, of a call `elapsed_ms` and `usage.cached_tokens`, of a search `took` and
//! `cached`. Of an item that was tried again only the last line counts.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::Value;

use super::contents::Contents;
use super::difference::{self, FieldDifference};
use super::error::RunError;
use super::link::Link;

/// The differences between two run directories, in the keys' order, searches and calls first; none when the runs are equal.
///
/// Errors when one of them does not verify line by line. What an unfinished run lacks is a difference.
pub fn compare(left: &Path, right: &Path) -> Result<Vec<String>, RunError> {
    let (left, right) = (Contents::read(left)?, Contents::read(right)?);
    let words = ["only in the first run", "only in the second run"];
    let mut found = compare_all(&left.searches.by_key(), &right.searches.by_key(), words)?;
    found.extend(compare_all(&left.calls.by_key(), &right.calls.by_key(), words)?);
    found.extend(compare_all(&left.outcomes(), &right.outcomes(), words)?);
    Ok(found)
}

/// The fields in which two calls, or two items, are not equal, the left value first.
fn compare_records<R: Link>(left: &R, right: &R) -> Result<Vec<FieldDifference>, RunError> {
    let comparable = |record: &R| {
        let mut fields = difference::as_json(record)
            .map_err(|error| RunError::unloggable(record.key(), error))?;
        if let Value::Object(fields) = &mut fields {
            for name in ["seq", "elapsed_ms", "took", "cached", "prev", "hash"] {
                fields.shift_remove(name);
            }
            if let Some(Value::Object(usage)) = fields.get_mut("usage") {
                usage.shift_remove("cached_tokens");
            }
        }
        Ok::<_, RunError>(fields)
    };
    Ok(difference::differences(&comparable(left)?, &comparable(right)?))
}

/// The differences between the lines of two logs, by their keys: of each the fields in which they differ, or what is to be said of a line
/// that one of them lacks.
pub(super) fn compare_all<R: Link>(
    left: &BTreeMap<R::Key, &R>,
    right: &BTreeMap<R::Key, &R>,
    [only_left, only_right]: [&str; 2],
) -> Result<Vec<String>, RunError> {
    let mut found = Vec::new();
    let keys: BTreeSet<&R::Key> = left.keys().chain(right.keys()).collect();
    for key in keys {
        match (left.get(key), right.get(key)) {
            (Some(a), Some(b)) => {
                let fields = compare_records(*a, *b)?.into_iter();
                found.extend(fields.map(|field| format!("{key}: {field}")));
            }
            (Some(_), None) => found.push(format!("{key}: {only_left}")),
            (None, _) => found.push(format!("{key}: {only_right}")),
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{call, failed_item, item, plan, start, write_finished};
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

    fn compare_with(calls: &[CallLine], items: &[AnswerLine]) -> Vec<String> {
        let scratch = tempfile::tempdir().unwrap();
        let (left, right) = (scratch.path().join("left"), scratch.path().join("right"));
        let both = [call("q1", 0, "sym"), call("q1", 0, "ddx")];
        write(&left, &both, &[item("q1", 0), item("q2", 0)]);
        write(&right, calls, items);
        compare(&left, &right).unwrap()
    }

    #[test]
    fn a_run_equals_itself() {
        let out = tempfile::tempdir().unwrap();
        write_finished(out.path());
        assert_eq!(compare(out.path(), out.path()).unwrap(), [""; 0]);
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
            "item q1 of medqa, run 0: rounds[0].weights[1] is 0.1 against 0.3",
            "item q2 of medqa, run 0: only in the first run",
            "item q3 of medqa, run 0: only in the second run",
        ];
        assert_eq!(found, expected);
    }
}
