//! What changes from one run to another, question by question.

use std::fmt;

use serde::Serialize;

use crate::analysis::facts::Facts;
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
    pub gold: Said,
    /// What the first says and the other: a letter, or whether the note has an error; empty where it says nothing.
    pub from: Said,
    pub to: Said,
}

/// What a run says of an item.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Said {
    pub answer: String,
    /// Of a letter: the option, for the runs may have it at different ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub option: Option<String>,
}

impl Said {
    fn of(run: &Outcomes<'_>, item: &str, answer: &str) -> Said {
        let option = run.option(item, answer).map(str::to_owned);
        Said { answer: answer.to_owned(), option }
    }
}

impl fmt::Display for Said {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.answer.as_str(), &self.option) {
            ("", _) => f.write_str("none"),
            (answer, None) => f.write_str(answer),
            (letter, Some(option)) => write!(f, "{letter} ({option})"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    RightToWrong,
    WrongToRight,
}

impl Direction {
    pub fn in_words(self) -> &'static str {
        match self {
            Direction::RightToWrong => "right → wrong",
            Direction::WrongToRight => "wrong → right",
        }
    }
}

/// By question in the order of the plan, then by run.
pub fn flips(first: &Outcomes<'_>, other: &Outcomes<'_>) -> Vec<Flip> {
    let mut flips = Vec::new();
    for question in 0..first.items.len() {
        for (left, right) in first.graded.0.iter().zip(&other.graded.0) {
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
                gold: Said::of(first, from.item(), from.gold().unwrap_or_default()),
                from: Said::of(first, from.item(), from.says()),
                to: Said::of(other, to.item(), to.says()),
            });
        }
    }
    flips
}

/// The share of questions, with and without gold, on which either run chooses the same option, at whatever letter; no answer agrees with
/// none.
pub fn agreement(first: &Outcomes<'_>, other: &Outcomes<'_>) -> Option<OverRuns> {
    let agree = |(left, right): (&Option<&ItemLine>, &Option<&ItemLine>)| {
        let (Some(left), Some(right)) = (left, right) else { return false };
        let said = |run: &Outcomes<'_>, line: &ItemLine| {
            let Said { answer, option } = Said::of(run, line.item(), line.says());
            option.unwrap_or(answer)
        };
        !left.says().is_empty() && said(first, left) == said(other, right)
    };
    let runs = first.lines.iter().zip(&other.lines);
    let runs = runs.map(|(left, right)| left.iter().zip(right).map(agree).collect());
    Facts(runs.collect()).share(|agree| *agree)
}
