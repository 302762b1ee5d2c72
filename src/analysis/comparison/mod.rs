//! Any runs over the same questions, side by side: accuracy, cost; and from the first to each other what
//! flips, whether that is more than chance, and which fields of their plans differ.

pub mod table;

use std::collections::HashSet;
use std::path::PathBuf;

use itertools::Itertools;
use serde::Serialize;

use crate::analysis::conditions;
use crate::analysis::facts::Facts;
use crate::analysis::figures::RunFigures;
use crate::analysis::metrics::bootstrap::{Estimate, paired_difference};
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::metrics::significance::{McNemar, mcnemar};
use crate::analysis::outcomes::Outcomes;
use crate::data::ItemKind;
use crate::diagnosis::Failure;
use crate::experiment::compare::FieldDifference;
use crate::experiment::contents::Contents;
use crate::experiment::verify::read_finished;
use crate::record::ItemLine;

/// The figures of several runs on the same questions.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    pub dataset: String,
    /// What they ran over.
    #[serde(skip)]
    pub kind: ItemKind,
    /// Questions or notes that are compared.
    pub n_items: usize,
    /// Of them, those with gold, which alone are right or wrong.
    pub n_graded: usize,
    /// Questions that not every run has.
    pub n_left_out: usize,
    /// Whether every answer is noise of synthetic weights.
    pub synthetic: bool,
    /// Whose prompts and examples, decoding, bounds, thinking, seats: what all runs have in common, then what differs.
    pub conditions: Vec<String>,
    pub runs: Vec<ComparedRun>,
    pub pairs: Vec<RunPair>,
}

/// One of the runs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ComparedRun {
    /// The directory, as it was named.
    pub run: String,
    pub system: String,
    #[serde(flatten)]
    pub figures: RunFigures,
}

/// The first run and another; their repetitions are paired in order, as many as both have.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunPair {
    pub first: String,
    pub other: String,
    pub n_runs: usize,
    /// The other's accuracy less the first's, over all runs of both; `null` without gold.
    pub difference: Option<Estimate>,
    /// One for each paired run; left is the first.
    pub mcnemar: Vec<McNemar>,
    /// Shares of all questions on which paired runs choose the same option.
    pub agreement: Option<OverRuns>,
    /// Items that the first has right in a run and the other wrong in the run that it is paired with, and the reverse.
    pub right_to_wrong: usize,
    pub wrong_to_right: usize,
    /// What their plans would run differently, the first's value on the left.
    pub plan: Vec<FieldDifference>,
}

/// Compares the finished runs in `directories` on the items that all of them ran, the first with every other.
///
/// # Errors
/// A directory that is no finished run, or does not verify; runs over different files, or without an item in common.
pub fn compare_runs(directories: &[PathBuf]) -> Result<Comparison, Failure> {
    let read = |path: &PathBuf| Ok::<_, Failure>(read_finished(path)?.0);
    let mut runs: Vec<Contents> = directories.iter().map(read).try_collect()?;
    let shared = shared(&runs)?;
    let first = &runs[0];
    let others = runs.iter().skip(1);
    let plans: Vec<_> = others.map(|other| first.plan.differences(&other.plan)).try_collect()?;
    let dataset = first.plan.dataset.name.clone();
    let is_of_notes = first.items.records.iter().any(|item| item.note().is_some());
    let kind = if is_of_notes { ItemKind::Notes } else { ItemKind::Questions };
    let all = runs.iter().flat_map(|run| &run.plan.dataset.items).unique().count();
    let n_left_out = all - shared.len();
    for contents in &mut runs {
        keep(contents, &shared);
    }

    let runs: Vec<Outcomes<'_>> = runs.iter().map(Outcomes::of).collect();
    let rows = runs.iter().map(|run| {
        let system = run.contents.plan.system_name().to_owned();
        ComparedRun { run: run.name(), system, figures: RunFigures::of(run) }
    });
    let made = runs.iter().map(|run| (run.name(), conditions::of(&run.contents.plan)));
    let pairs = runs.iter().skip(1).zip(plans);
    Ok(Comparison {
        dataset,
        kind,
        n_items: shared.len(),
        n_graded: runs[0].items.len(),
        n_left_out,
        synthetic: runs.iter().all(|run| run.contents.plan.synthetic),
        conditions: conditions::say(&made.collect_vec()),
        runs: rows.collect(),
        pairs: pairs.map(|(other, plan)| pair(&runs[0], other, plan)).collect(),
    })
}

fn pair(first: &Outcomes<'_>, other: &Outcomes<'_>, plan: Vec<FieldDifference>) -> RunPair {
    let (left, right) = (first.right(), other.right());
    let is_graded = !first.items.is_empty();
    let units = first.units();
    let tests = left.0.iter().zip(&right.0).filter(|_| is_graded);
    let turned = |before: bool| {
        let runs = left.0.iter().zip(&right.0);
        let both = runs.flat_map(|(left, right)| left.iter().zip(right));
        both.filter(|(left, right)| **left == before && **right != before).count()
    };
    RunPair {
        first: first.name(),
        other: other.name(),
        n_runs: left.0.len().min(right.0.len()),
        difference: paired_difference(&right, &left, &units),
        mcnemar: tests.map(|(left, right)| mcnemar(left, right, &units)).collect(),
        agreement: agreement(first, other),
        right_to_wrong: turned(true),
        wrong_to_right: turned(false),
        plan,
    }
}

/// The share of questions, with and without gold, on which either run chooses the same option, at whatever letter; no answer agrees with
/// none.
fn agreement(first: &Outcomes<'_>, other: &Outcomes<'_>) -> Option<OverRuns> {
    let agree = |(left, right): (&Option<&ItemLine>, &Option<&ItemLine>)| {
        let (Some(left), Some(right)) = (left, right) else { return false };
        !left.says().is_empty() && first.chosen(left) == other.chosen(right)
    };
    let runs = first.lines.iter().zip(&other.lines);
    let runs = runs.map(|(left, right)| left.iter().zip(right).map(agree).collect());
    Facts(runs.collect()).share(|agree| *agree)
}

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
fn keep(contents: &mut Contents, questions: &[String]) {
    let kept: HashSet<&str> = questions.iter().map(String::as_str).collect();
    let (calls, items) = (&mut contents.calls.records, &mut contents.items.records);
    calls.retain(|call| kept.contains(call.item.as_str()));
    items.retain(|item| kept.contains(item.item()));
    contents.plan.found.dataset.items = questions.to_vec();
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::data::{Choice, Item};
    use crate::experiment::fixtures::write_results;
    use crate::experiment::fixtures::{call, failed_item, item, plan, start, start_with, texts};
    use crate::experiment::plan::Plan;
    use crate::record::AnswerLine;

    /// A run that answers `B` but where `letters` says otherwise: run, item, letter; none is an error.
    fn write(path: &Path, plan: &Plan, letters: &[(u32, &str, &str)]) -> PathBuf {
        let log = start(path, plan);
        for run in 0..plan.runs {
            for name in &plan.dataset.items {
                log.call(call(name, run, "sym")).unwrap();
                let other = letters.iter().find(|(at, of, _)| (*at, *of) == (run, name));
                log.item(match other {
                    None => item(name, run),
                    Some((_, _, "")) => failed_item(name, run),
                    Some((_, _, letter)) => answering(item(name, run), letter),
                })
                .unwrap();
            }
        }
        log.finish().unwrap();
        write_results(path, 1).unwrap();
        path.to_owned()
    }

    fn answering(record: AnswerLine, letter: &str) -> AnswerLine {
        AnswerLine {
            answer: letter.to_owned(),
            correct: record.gold.as_ref().map(|gold| gold == letter),
            ..record
        }
    }

    /// `q1` is right with B, `q2` with C, `q3` has no gold.
    #[test]
    fn flips_tests_and_agreement_of_two_runs() {
        let scratch = tempfile::tempdir().unwrap();
        let mut other = plan();
        other.seed = 43;
        let paths = [
            write(&scratch.path().join("a"), &plan(), &[]),
            write(
                &scratch.path().join("b"),
                &other,
                &[(0, "q1", "D"), (0, "q2", "C"), (1, "q1", ""), (1, "q3", "A")],
            ),
        ];
        let comparison = compare_runs(&paths).unwrap();
        assert_eq!((comparison.n_items, comparison.n_graded), (3, 2));
        assert_eq!(comparison.n_left_out, 0);
        let [a, b] = &comparison.runs[..] else { panic!("{comparison:?}") };
        let accuracy = |row: &ComparedRun| row.figures.accuracy.clone().unwrap().per_run;
        assert_eq!((accuracy(a), accuracy(b)), (vec![0.5, 0.5], vec![0.5, 0.0]));
        assert_eq!((a.figures.n_errors, b.figures.n_errors), (0, 1));
        let cost = b.figures.cost.unwrap();
        assert_eq!((cost.total.calls, cost.n_items), (6.0, 6));

        let pair = &comparison.pairs[0];
        let difference = pair.difference.unwrap();
        assert_eq!((difference.mean, difference.n_questions), (-0.25, 2));
        assert!(difference.low.unwrap() <= -0.25 && difference.high.unwrap() >= -0.25);
        let tests: Vec<(usize, usize)> =
            pair.mcnemar.iter().map(|test| (test.only_left, test.only_right)).collect();
        assert_eq!(tests, [(1, 1), (1, 0)]);
        // q3 alone agrees in run 0; q2 alone in run 1, where q1 has no answer.
        let agreement = pair.agreement.as_ref().unwrap();
        assert_eq!(agreement.per_run, [1.0 / 3.0, 1.0 / 3.0]);
        // q1 in both runs; q2 in the first.
        assert_eq!((pair.right_to_wrong, pair.wrong_to_right), (2, 1));
        assert_eq!(pair.plan.len(), 1);
        assert_eq!(pair.plan[0].to_string(), "seed is 42 against 43");
    }

    #[test]
    fn options_at_other_letters_are_the_same_options() {
        let scratch = tempfile::tempdir().unwrap();
        let mut plan = plan();
        (plan.runs, plan.dataset.items) = (1, vec!["q1".to_owned()]);
        // B is zinc and right in one, A in the other; the first says iron, the other says zinc, then iron.
        let run = |name: &str, options: [&str; 2], gold: &str, said: &str| {
            let mut texts = texts(&["q1"]);
            let Item::Question(question) = &mut texts[0] else { panic!("{texts:?}") };
            let choice = |(letter, text): (char, &str)| Choice { letter, text: text.to_owned() };
            question.options = ('A'..).zip(options).map(choice).collect();
            question.gold = gold.chars().next();
            let path = scratch.path().join(name);
            let log = start_with(&path, &plan, &texts);
            let line = AnswerLine { gold: Some(gold.to_owned()), ..item("q1", 0) };
            log.item(answering(line, said)).unwrap();
            log.finish().unwrap();
            write_results(&path, 1).unwrap();
            path
        };
        let first = run("first", ["iron", "zinc"], "B", "A");
        let zinc = run("zinc", ["zinc", "iron"], "A", "A");
        let iron = run("iron", ["zinc", "iron"], "A", "B");
        let pairs = compare_runs(&[first, zinc, iron]).unwrap().pairs;
        let agreement = |pair: &RunPair| pair.agreement.as_ref().unwrap().mean;
        assert_eq!((agreement(&pairs[0]), agreement(&pairs[1])), (0.0, 1.0));
        assert_eq!((pairs[0].right_to_wrong, pairs[0].wrong_to_right), (0, 1));
    }

    #[test]
    fn a_run_against_itself_changes_nothing() {
        let scratch = tempfile::tempdir().unwrap();
        let path = write(&scratch.path().join("a"), &plan(), &[(0, "q1", "A")]);
        let comparison = compare_runs(&[path.clone(), path]).unwrap();
        let pair = &comparison.pairs[0];
        assert_eq!((pair.right_to_wrong, pair.wrong_to_right, pair.plan.len()), (0, 0, 0));
        assert_eq!((pair.difference.unwrap().mean, pair.difference.unwrap().low), (0.0, None));
        assert!(pair.mcnemar.iter().all(|test| test.p_value == 1.0));
        assert_eq!(pair.agreement.as_ref().unwrap().mean, 1.0);
        assert_eq!(comparison.runs[0], comparison.runs[1]);
    }

    #[test]
    fn the_items_that_all_ran_are_compared() {
        let scratch = tempfile::tempdir().unwrap();
        let with = |name: &str, items: &[&str]| {
            let mut plan = plan();
            plan.dataset.items = items.iter().map(|id| id.to_string()).collect();
            write(&scratch.path().join(name), &plan, &[])
        };
        let (a, b) = (with("a", &["q1", "q2", "q3"]), with("b", &["q4", "q2", "q1"]));
        let both = [a.clone(), b];
        let comparison = compare_runs(&both).unwrap();
        assert_eq!((comparison.n_items, comparison.n_left_out), (2, 2));
        for row in &comparison.runs {
            assert_eq!(row.figures.accuracy.as_ref().unwrap().per_run, [0.5, 0.5]);
            assert_eq!(row.figures.cost.unwrap().total.calls, 4.0);
        }
        assert_eq!(comparison.pairs[0].agreement.as_ref().unwrap().mean, 1.0);
        let mut fields = comparison.pairs[0].plan.iter();
        assert!(fields.any(|difference| difference.field == "dataset.items"));

        // The same questions in another order are the same questions.
        let turned = with("turned", &["q3", "q2", "q1"]);
        let pair = &compare_runs(&[a.clone(), turned]).unwrap().pairs[0];
        assert_eq!(pair.agreement.as_ref().unwrap().mean, 1.0);

        let apart = with("apart", &["q8", "q9"]);
        let error = compare_runs(&[a.clone(), apart]).unwrap_err();
        assert_eq!(error.to_string(), "the runs share no item");

        let mut plan = plan();
        plan.dataset.sha256 = "44".repeat(32);
        let other = write(&scratch.path().join("other"), &plan, &[]);
        let error = compare_runs(&[a, other]).unwrap_err();
        assert!(error.to_string().contains("of sha256 33"), "{error}");
    }

    #[test]
    fn without_gold_only_agreement_and_cost_are_left() {
        let scratch = tempfile::tempdir().unwrap();
        let mut plan = plan();
        plan.dataset.items = vec!["q3".to_owned()];
        let a = write(&scratch.path().join("a"), &plan, &[]);
        let b = write(&scratch.path().join("b"), &plan, &[(1, "q3", "A")]);
        let comparison = compare_runs(&[a, b]).unwrap();
        let pair = &comparison.pairs[0];
        assert_eq!((comparison.n_graded, pair.difference), (0, None));
        assert!(pair.mcnemar.is_empty() && pair.right_to_wrong + pair.wrong_to_right == 0);
        assert_eq!(pair.agreement.as_ref().unwrap().per_run, [1.0, 0.0]);
        assert!(
            comparison.runs[0].figures.accuracy.is_none()
                && comparison.runs[0].figures.cost.is_some()
        );
        assert!(comparison.tables()[0].markdown().contains("| no gold |"));
    }

    #[test]
    fn an_unfinished_run_is_not_compared() {
        let scratch = tempfile::tempdir().unwrap();
        let path = write(&scratch.path().join("a"), &plan(), &[]);
        fs_err::remove_file(path.join("results.json")).unwrap();
        let error = compare_runs(&[path.clone(), path]).unwrap_err();
        assert!(error.to_string().ends_with("has not finished"), "{error}");
    }
}
