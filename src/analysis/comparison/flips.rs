//! What changes from one run to another, question by question.

use serde::Serialize;

use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::outcomes::Outcomes;
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
pub fn flips(first: &Outcomes<'_>, other: &Outcomes<'_>) -> Vec<Flip> {
    let (left, right) = (first.graded(), other.graded());
    let mut flips = Vec::new();
    for question in 0..first.items().len() {
        for (left, right) in left.iter().zip(&right) {
            let (from, to) = (left[question], right[question]);
            let direction = match (from.correct(), to.correct()) {
                (Some(true), Some(false)) => Direction::RightToWrong,
                (Some(false), Some(true)) => Direction::WrongToRight,
                _ => continue,
            };
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
pub fn agreement(first: &Outcomes<'_>, other: &Outcomes<'_>) -> Option<OverRuns> {
    let says = |line: &Option<&ItemLine>| line.map(|line| line.says().to_owned());
    let agree = |(left, right): (&Option<&ItemLine>, &Option<&ItemLine>)| {
        let chosen = says(left).filter(|chosen| !chosen.is_empty());
        chosen.is_some() && chosen == says(right)
    };
    let runs = first.lines.iter().zip(&other.lines);
    let runs: Vec<Vec<bool>> =
        runs.map(|(left, right)| left.iter().zip(right).map(agree).collect()).collect();
    OverRuns::of_shares(&runs)
}
