//! What changes from one run to another, question by question.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::recipe::reading::Reading;
use crate::experiment::contents::Contents;
use crate::record::ItemKey;
use crate::record::ItemLine;

/// A question that one run of the first answers rightly and the paired run of the other wrongly, or the reverse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Flip {
    pub item: String,
    /// As the first numbers its runs.
    pub run: u32,
    pub direction: Direction,
    pub gold: String,
    /// What the first says and the other: a letter, or whether the note has an error; empty where it says nothing.
    pub from: String,
    pub to: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    RightToWrong,
    WrongToRight,
}

/// By question in the order of the plan, then by run.
pub fn flips(first: &Reading<'_>, other: &Reading<'_>) -> Vec<Flip> {
    let (left, right) = (first.verdicts(), other.verdicts());
    let mut flips = Vec::new();
    for question in 0..first.questions.len() {
        for run in 0..left.len().min(right.len()) {
            let direction = match (left[run][question], right[run][question]) {
                (true, false) => Direction::RightToWrong,
                (false, true) => Direction::WrongToRight,
                _ => continue,
            };
            let (from, to) = (first.item(run, question), other.item(run, question));
            flips.push(Flip {
                item: from.item().to_owned(),
                run: from.run(),
                direction,
                gold: from.gold().unwrap_or_default().to_owned(),
                from: from.says().to_owned(),
                to: to.says().to_owned(),
            });
        }
    }
    flips
}

/// The share of questions, with and without gold, on which either run chooses the same option; no answer agrees with none.
pub fn agreement(first: &Contents, other: &Contents) -> Option<OverRuns> {
    let (left, right) = (answers(first), answers(other));
    let questions = &first.plan.dataset.items;
    let runs: Vec<Vec<bool>> = left
        .values()
        .zip(right.values())
        .map(|(left, right)| {
            let agree = |question: &String| {
                let chosen = left.get(question.as_str());
                chosen.is_some_and(|letter| right.get(question.as_str()) == Some(letter))
            };
            questions.iter().map(agree).collect()
        })
        .collect();
    OverRuns::of_shares(&runs)
}

/// What was said, by run and question.
fn answers(contents: &Contents) -> BTreeMap<u32, BTreeMap<String, String>> {
    let outcomes: BTreeMap<ItemKey, &ItemLine> = contents.outcomes();
    let runs: BTreeSet<u32> = outcomes.keys().map(|key| key.run).collect();
    let mut answers: BTreeMap<u32, BTreeMap<String, String>> =
        runs.into_iter().map(|run| (run, BTreeMap::new())).collect();
    for (key, record) in outcomes {
        if !record.says().is_empty() {
            let run = answers.entry(key.run).or_default();
            run.insert(key.item, record.says().to_owned());
        }
    }
    answers
}
