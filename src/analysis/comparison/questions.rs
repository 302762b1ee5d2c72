//! Which questions runs share, and the runs cut to them.

use std::collections::{BTreeSet, HashSet};

use crate::analysis::scale::is_scale;
use crate::diagnosis::Failure;
use crate::experiment::contents::Contents;
use crate::experiment::difference::FieldDifference;
use crate::record::{ItemText, QuestionText};

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

/// The file's bytes and format decide which questions there are; its name and path do not matter. Judged answers are others in each file,
/// and are compared where the questions are the same.
fn refuse_other_file(first: &Contents, other: &Contents) -> Result<(), Failure> {
    let (left, right) = (&first.plan.dataset, &other.plan.dataset);
    if is_scale(first) && is_scale(other) {
        return refuse_other_questions(first, other);
    }
    let facts = [
        ("dataset.format", &left.format, &right.format),
        ("dataset.sha256", &left.sha256, &right.sha256),
    ];
    match facts.iter().find(|(_, left, right)| left != right) {
        None => Ok(()),
        Some((field, left, right)) => {
            let (field, left, right) = ((*field).to_owned(), (*left).clone(), (*right).clone());
            let difference = FieldDifference { field, left, right };
            let (first, other) = (first.path.display(), other.path.display());
            Err(Failure::usage(
                format!("{first} and {other} ran over different files: {difference}"),
                "only runs over one and the same file are compared",
            ))
        }
    }
}

/// Questions, their references and the steps of the scale must be the same, the steps in whatever order; what is judged may differ.
fn refuse_other_questions(first: &Contents, other: &Contents) -> Result<(), Failure> {
    let both = first.texts.iter().filter_map(|(id, text)| Some((id, text, other.texts.get(id)?)));
    for (id, ours, theirs) in both {
        let (ItemText::Question(ours), ItemText::Question(theirs)) = (ours, theirs) else {
            continue;
        };
        let steps = |text: &QuestionText| text.options.values().cloned().collect::<BTreeSet<_>>();
        let what = match ours.asked() == theirs.asked() {
            false => "judge answers to other questions, or by other references",
            true if steps(ours) != steps(theirs) => "judge on other scales",
            true => continue,
        };
        let (first, other) = (first.path.display(), other.path.display());
        return Err(Failure::usage(
            format!("{first} and {other} {what}: {id} is another in each"),
            "only judgements of answers to the same questions, beside the same references, on one scale are compared",
        ));
    }
    Ok(())
}

fn refuse_other_items(first: &Contents, other: &Contents) -> Result<(), Failure> {
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
    if only.is_empty() {
        return Ok(());
    }
    let hint = match left.intersection(&right).count() {
        0 => OTHER_ITEMS.to_owned(),
        shared => {
            format!("--common compares the items that all of them ran, {shared} of these two")
        }
    };
    let (first, other, only) = (first.path.display(), other.path.display(), only.join(", "));
    Err(Failure::usage(format!("{first} and {other} ran over different items: {only}"), &hint))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::fixtures::{plan, start_with};
    use crate::prompts::{PromptSet, fill};

    /// A run over one answer to judge: its reference, the answer, the steps in their order.
    fn judged(out: &std::path::Path, reference: &str, answer: &str, steps: [&str; 2]) -> Contents {
        let prompts = PromptSet::embedded();
        let prompt = prompts.get("judge/question", &["question", "reference", "answer"]).unwrap();
        let values =
            [("question", "Why?\n\nIndeed?"), ("reference", reference), ("answer", answer)];
        let mut plan = plan();
        plan.dataset.format = "scale".to_owned();
        let text = ItemText::Question(QuestionText {
            item: "q1".to_owned(),
            question: fill(&prompt, &values),
            options: ('A'..).zip(steps.map(str::to_owned)).collect(),
            ..QuestionText::default()
        });
        start_with(out, &plan, &[text]);
        Contents::read(out).unwrap()
    }

    #[test]
    fn judgements_are_compared_of_the_same_questions_references_and_steps_alone() {
        let scratch = tempfile::tempdir().unwrap();
        let run = |name: &str, reference: &str, answer: &str, steps: [&str; 2]| {
            judged(&scratch.path().join(name), reference, answer, steps)
        };
        let first = run("a", "Iron.", "zinc", ["1: no", "2: yes"]);
        let same = run("b", "Iron.", "Iron, I think.", ["2: yes", "1: no"]);
        assert!(shared(&[first.clone(), same], false).is_ok());
        let refused = |other: Contents| {
            let error = shared(&[first.clone(), other], false).unwrap_err().to_string();
            assert!(error.contains("q1 is another in each"), "{error}");
            error
        };
        let other = run("c", "Zinc.", "zinc", ["1: no", "2: yes"]);
        assert!(refused(other).contains("or by other references"));
        let other = run("d", "Iron.", "zinc", ["1: wrong", "2: yes"]);
        assert!(refused(other).contains("judge on other scales"));
    }
}
