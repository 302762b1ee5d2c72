//! Which questions runs share, and the runs cut to them.

use std::collections::HashSet;

use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;

/// The ids that every run has, in the order of the first.
///
/// # Errors
/// Runs over different files, or without an item that all of them have.
pub fn shared(runs: &[Contents]) -> Result<Vec<String>, Failure> {
    let mut shared = runs.first().map_or(Vec::new(), |first| first.plan.dataset.items.clone());
    for other in runs.iter().skip(1) {
        // The file's bytes and format decide which questions there are; its name and path do not matter.
        let file = |run: &Contents| {
            format!("{} of sha256 {}", run.plan.dataset.format, run.plan.dataset.sha256)
        };
        let (left, right) = (file(&runs[0]), file(other));
        if left != right {
            let [first, other] = [&runs[0], other].map(|run| run.path.display());
            return Err(Failure::usage(
                format!("{first} and {other} ran over different files: {left} against {right}"),
                "only runs over one and the same file are compared",
            ));
        }
        let theirs: HashSet<&String> = other.plan.dataset.items.iter().collect();
        shared.retain(|id| theirs.contains(id));
    }
    match shared.is_empty() {
        true => Err(Failure::usage(
            "the runs share no item",
            "only runs over the same items are compared",
        )),
        false => Ok(shared),
    }
}

/// Cuts a run, as it was read, to some of its questions, in this order.
pub fn keep(contents: &mut Contents, questions: &[String]) {
    let kept: HashSet<&str> = questions.iter().map(String::as_str).collect();
    let (calls, items) = (&mut contents.calls.records, &mut contents.items.records);
    calls.retain(|call| kept.contains(call.item.as_str()));
    items.retain(|item| kept.contains(item.item()));
    contents.plan.found.dataset.items = questions.to_vec();
}
