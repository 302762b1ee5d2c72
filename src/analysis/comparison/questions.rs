//! Which questions runs share, and the runs cut to them.

use std::collections::HashSet;

use super::ComparisonError;
use crate::experiment::contents::Contents;
use crate::experiment::difference::FieldDifference;

/// The ids that every run has, in the order of the first. Without `common` they must be all that any has.
///
/// # Errors
/// Runs over different files, or over different questions of one.
pub fn shared(runs: &[Contents], common: bool) -> Result<Vec<String>, ComparisonError> {
    let Some((first, others)) = runs.split_first() else {
        return Err(ComparisonError::NothingShared);
    };
    let mut shared = first.plan.dataset.items.clone();
    for other in others {
        refuse_other_file(first, other)?;
        if !common {
            refuse_other_items(first, other)?;
        }
        let theirs = ids(other);
        shared.retain(|id| theirs.contains(id.as_str()));
    }
    match shared.is_empty() {
        true => Err(ComparisonError::NothingShared),
        false => Ok(shared),
    }
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
fn refuse_other_file(first: &Contents, other: &Contents) -> Result<(), ComparisonError> {
    let (left, right) = (&first.plan.dataset, &other.plan.dataset);
    let facts = [
        ("dataset.format", &left.format, &right.format),
        ("dataset.sha256", &left.sha256, &right.sha256),
    ];
    match facts.iter().find(|(_, left, right)| left != right) {
        None => Ok(()),
        Some((field, left, right)) => Err(ComparisonError::OtherFile {
            first: first.path.clone(),
            other: other.path.clone(),
            difference: FieldDifference {
                field: (*field).to_owned(),
                left: (*left).clone(),
                right: (*right).clone(),
            },
        }),
    }
}

fn refuse_other_items(first: &Contents, other: &Contents) -> Result<(), ComparisonError> {
    let (left, right) = (ids(first), ids(other));
    let only = [(first, &right), (other, &left)];
    let only = only.iter().filter_map(|(run, others)| {
        let items = &run.plan.dataset.items;
        let mut alone = items.iter().filter(|id| !others.contains(id.as_str()));
        let example = alone.next()?;
        let (count, path) = (1 + alone.count(), run.path.display());
        Some(format!("{count} only in {path}, such as {example}"))
    });
    let only: Vec<String> = only.collect();
    match only.is_empty() {
        true => Ok(()),
        false => Err(ComparisonError::OtherItems {
            first: first.path.clone(),
            other: other.path.clone(),
            only,
            n_shared: left.intersection(&right).count(),
        }),
    }
}
