//! Which questions runs share, and the runs cut to them.

use std::collections::HashSet;

use itertools::Itertools;

use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;

/// The ids that every run has, in the order of the first. Without `common` they must be all that any has.
///
/// # Errors
/// Runs over different files, or over different questions of one.
pub fn shared(runs: &[Contents], common: bool) -> Result<Vec<String>, Failure> {
    let Some((first, others)) = runs.split_first() else { return Err(nothing_shared()) };
    let mut shared = first.plan.dataset.items.clone();
    for other in others {
        refuse_other_file(first, other)?;
        if !common {
            refuse_other_items(first, other)?;
        }
        let theirs = ids(other);
        shared.retain(|id| theirs.contains(id.as_str()));
    }
    if shared.is_empty() { Err(nothing_shared()) } else { Ok(shared) }
}

const OTHER_ITEMS: &str = "only runs over the same items are compared";

pub fn nothing_shared() -> Failure {
    Failure::usage("the runs share no item", OTHER_ITEMS)
}

/// How many questions any of the runs has.
pub fn count_all(runs: &[Contents]) -> usize {
    let all: HashSet<&str> = runs.iter().flat_map(ids).collect();
    all.len()
}

/// Cuts a run, as it was read, to some of its questions, in this order.
pub fn keep(contents: &mut Contents, questions: &[String]) {
    let kept: HashSet<&str> = questions.iter().map(String::as_str).collect();
    let (calls, items) = (&mut contents.calls.records, &mut contents.items.records);
    calls.retain(|call| kept.contains(call.item.as_str()));
    items.retain(|item| kept.contains(item.item()));
    contents.plan.dataset.items = questions.to_vec();
}

fn ids(contents: &Contents) -> HashSet<&str> {
    let items = contents.plan.dataset.items.iter();
    items.map(String::as_str).collect()
}

/// The file's bytes and format decide which questions there are; its name and path do not matter.
fn refuse_other_file(first: &Contents, other: &Contents) -> Result<(), Failure> {
    let (left, right) = (&first.plan.dataset, &other.plan.dataset);
    let facts = [
        ("dataset.format", &left.format, &right.format),
        ("dataset.sha256", &left.sha256, &right.sha256),
    ];
    let Some((field, left, right)) = facts.into_iter().find(|(_, left, right)| left != right)
    else {
        return Ok(());
    };
    let (first, other) = (first.path.display(), other.path.display());
    Err(Failure::usage(
        format!("{first} and {other} ran over different files: {field} is {left} against {right}"),
        "only runs over one and the same file are compared",
    ))
}

fn refuse_other_items(first: &Contents, other: &Contents) -> Result<(), Failure> {
    let (left, right) = (ids(first), ids(other));
    let only = [(first, &right), (other, &left)];
    let mut only = only.iter().filter_map(|(run, others)| {
        let items = &run.plan.dataset.items;
        let mut alone = items.iter().filter(|id| !others.contains(id.as_str()));
        let example = alone.next()?;
        let (count, path) = (1 + alone.count(), run.path.display());
        Some(format!("{count} only in {path}, such as {example}"))
    });
    let only = only.join(", ");
    if only.is_empty() {
        return Ok(());
    }
    let hint = match left.intersection(&right).count() {
        0 => OTHER_ITEMS.to_owned(),
        shared => {
            format!("--common compares the items that all of them ran, {shared} of these two")
        }
    };
    let (first, other) = (first.path.display(), other.path.display());
    Err(Failure::usage(format!("{first} and {other} ran over different items: {only}"), &hint))
}
