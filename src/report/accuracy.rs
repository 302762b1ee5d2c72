//! The accuracy of a run: a row per run, and what all runs come to.

use serde::Serialize;

use super::case::{Case, Verdict};
use super::figure::{Drawing, Lane, Row as Bars, Rows};
use super::flag::Flag;
use super::table::{self, Cell, Column, Kind, Table};
use crate::analysis::metrics::over_runs::mean_and_std;
use crate::record::{CallLine, Parse};

#[derive(Serialize)]
pub struct Accuracy {
    rows: Vec<Row>,
    total: Row,
    /// Mean accuracy over the runs that have gold answers, and its sample standard deviation (ddof 1).
    mean: Option<String>,
    deviation: Option<String>,
    /// The same for round 0's aggregate: the panel without debate.
    mean_at_first: Option<String>,
    graded_runs: usize,
    /// Whether any case went on after its first answers.
    went_on: bool,
    #[serde(skip)]
    overall: Option<(f64, Option<f64>)>,
}

/// Counts over the cases and calls of one run, or of all.
#[derive(Default, Serialize)]
struct Row {
    run: Option<u32>,
    items: usize,
    graded: usize,
    right: usize,
    right_at_first: usize,
    accuracy: Option<String>,
    at_first: Option<String>,
    right_to_wrong: usize,
    wrong_to_right: usize,
    errors: usize,
    ties: usize,
    mean_rounds: Option<String>,
    calls: usize,
    prompt_tokens: usize,
    cached_tokens: usize,
    completion_tokens: usize,
    forced_tokens: usize,
    seconds: String,
    parse_ok: usize,
    parse_repaired: usize,
    parse_fallback: usize,
}

impl Accuracy {
    pub fn new(runs: &[u32], cases: &[Case], calls: &[&CallLine]) -> Accuracy {
        let row = |run: Option<u32>| {
            let of_run = |number: u32| run.is_none_or(|run| run == number);
            let cases: Vec<_> = cases.iter().filter(|case| of_run(case.run)).collect();
            let calls: Vec<_> = calls
                .iter()
                .filter(|call| of_run(call.run))
                .copied()
                .collect();
            Row::new(run, &cases, &calls)
        };
        let rows: Vec<Row> = runs.iter().map(|&run| row(Some(run))).collect();
        let accuracies: Vec<f64> = rows.iter().filter_map(Row::share_right).collect();
        let at_first: Vec<f64> = rows.iter().filter_map(Row::share_right_at_first).collect();
        let overall = mean_and_std(&accuracies);
        Accuracy {
            mean: overall.map(|(mean, _)| four_digits(mean)),
            deviation: overall.and_then(|(_, std)| std).map(four_digits),
            mean_at_first: mean_and_std(&at_first).map(|(mean, _)| four_digits(mean)),
            graded_runs: accuracies.len(),
            went_on: cases.iter().any(|case| case.rounds_run > 0),
            overall,
            total: row(None),
            rows,
        }
    }

    /// The runs as `--format` prints them.
    pub fn table(&self) -> Table {
        let number = |label: &str| Column::new(label, Kind::Number);
        let mut columns = vec![Column::new("run", Kind::Text)];
        columns.extend(
            [
                "accuracy",
                "round 0",
                "items",
                "graded",
                "errors",
                "wrong → right",
                "right → wrong",
                "ties",
                "calls",
                "prompt tokens",
                "cached tokens",
                "completion tokens",
                "forced tokens",
                "parse ok",
                "parse repaired",
                "parse fallback",
            ]
            .map(number),
        );
        let all = self.rows.len() > 1;
        let rows = self.rows.iter().chain(all.then_some(&self.total));
        let cells = |row: &Row| {
            let run = row.run.map_or("all".to_owned(), |run| run.to_string());
            let mut cells = vec![
                Cell::Text(run),
                Cell::share(row.share_right()),
                Cell::share(row.share_right_at_first()),
            ];
            let counts = [
                row.items,
                row.graded,
                row.errors,
                row.wrong_to_right,
                row.right_to_wrong,
                row.ties,
                row.calls,
                row.prompt_tokens,
                row.cached_tokens,
                row.completion_tokens,
                row.forced_tokens,
                row.parse_ok,
                row.parse_repaired,
                row.parse_fallback,
            ];
            cells.extend(counts.map(Cell::Count));
            table::Row::new(cells)
        };
        let mut notes = vec!["An item that errored counts as wrong.".to_owned()];
        if let Some((mean, std)) = self.overall {
            let std = std.map_or(", so no spread".to_owned(), |std| format!(" ± {std:.4}"));
            notes.push(format!("n = {}: {mean:.4}{std}", self.graded_runs));
        }
        Table {
            name: "accuracy",
            title: "Accuracy, run by run".to_owned(),
            columns,
            rows: rows.map(cells).collect(),
            notes,
        }
    }

    /// A bar for every run, and the mean with its deviation; `None` without gold.
    pub fn drawing(&self) -> Option<Drawing> {
        let (mean, std) = self.overall?;
        let bars = |label: String, of: &Row, spread: Option<(f64, Option<f64>)>| {
            let (right, std) = match spread {
                Some((mean, std)) => (Some(mean), std),
                None => (of.share_right(), None),
            };
            let first = of.share_right_at_first().filter(|_| self.went_on);
            let first = first.map(|first| Lane::bar(1, first, None));
            let last = right.map(|right| Lane::bar(0, right, std));
            Bars {
                label,
                lanes: first.into_iter().chain(last).collect(),
            }
        };
        let graded = self.rows.iter().filter(|row| row.graded > 0);
        let mut rows: Vec<Bars> = graded
            .map(|row| bars(format!("run {}", row.run.unwrap_or(0)), row, None))
            .collect();
        if rows.len() > 1 {
            rows.push(bars("all runs".to_owned(), &self.total, Some((mean, std))));
        }
        let drawing = Rows {
            title: "Accuracy, run by run".to_owned(),
            description:
                "Accuracy of each run, and of round 0 alone where there were later rounds."
                    .to_owned(),
            reach: vec![0.0, 1.0],
            rows,
        };
        Some(drawing.draw())
    }
}

impl Row {
    fn new(run: Option<u32>, cases: &[&Case], calls: &[&CallLine]) -> Row {
        let having = |flag: Flag| cases.iter().filter(|case| case.has(flag)).count();
        let answered: Vec<f64> = cases
            .iter()
            .filter(|case| !case.has(Flag::Error))
            .map(|case| f64::from(case.rounds_run))
            .collect();
        let tokens = |count: fn(&CallLine) -> usize| calls.iter().map(|call| count(call)).sum();
        let parsed = |parse: Parse| calls.iter().filter(|call| call.parse == parse).count();
        let elapsed_ms: u64 = calls.iter().map(|call| call.elapsed_ms).sum();
        let mut row = Row {
            run,
            items: cases.len(),
            graded: cases.iter().filter(|case| case.gold.is_some()).count(),
            right: having(Flag::Right),
            right_at_first: cases.iter().filter(|case| right_at_first(case)).count(),
            accuracy: None,
            at_first: None,
            right_to_wrong: having(Flag::RightToWrong),
            wrong_to_right: having(Flag::WrongToRight),
            errors: having(Flag::Error),
            ties: having(Flag::Tie),
            mean_rounds: mean_and_std(&answered).map(|(rounds, _)| format!("{rounds:.2}")),
            calls: calls.len(),
            prompt_tokens: tokens(|call| call.usage.prompt_tokens),
            cached_tokens: tokens(|call| call.usage.cached_tokens),
            completion_tokens: tokens(|call| call.usage.completion_tokens),
            forced_tokens: tokens(|call| call.usage.forced_tokens),
            seconds: format!("{:.1}", elapsed_ms as f64 / 1000.0),
            parse_ok: parsed(Parse::Ok),
            parse_repaired: parsed(Parse::Repaired),
            parse_fallback: parsed(Parse::Fallback),
        };
        row.accuracy = row.share_right().map(four_digits);
        row.at_first = row.share_right_at_first().map(four_digits);
        row
    }

    fn share_right(&self) -> Option<f64> {
        (self.graded > 0).then(|| self.right as f64 / self.graded as f64)
    }

    fn share_right_at_first(&self) -> Option<f64> {
        (self.graded > 0).then(|| self.right_at_first as f64 / self.graded as f64)
    }
}

/// An item that errored is wrong at first too, however far it got.
fn right_at_first(case: &Case) -> bool {
    let verdict = case.at_first.as_ref().map(|mark| mark.verdict);
    !case.has(Flag::Error) && verdict == Some(Verdict::Right)
}

fn four_digits(value: f64) -> String {
    format!("{value:.4}")
}
