//! The accuracy table: a row per run, and what all runs come to.

use serde::Serialize;

use super::case::{Case, Verdict};
use super::flag::Flag;
use crate::run::records::{CallRecord, Parse};

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
    pub fn new(runs: &[u32], cases: &[Case], calls: &[&CallRecord]) -> Accuracy {
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
        let graded = || rows.iter().filter(|row| row.graded > 0);
        let accuracies: Vec<f64> = graded().map(|row| share(row.right, row.graded)).collect();
        let at_first: Vec<f64> = graded()
            .map(|row| share(row.right_at_first, row.graded))
            .collect();
        Accuracy {
            mean: mean(&accuracies).map(four_digits),
            deviation: sample_deviation(&accuracies).map(four_digits),
            mean_at_first: mean(&at_first).map(four_digits),
            graded_runs: accuracies.len(),
            total: row(None),
            rows,
        }
    }
}

impl Row {
    fn new(run: Option<u32>, cases: &[&Case], calls: &[&CallRecord]) -> Row {
        let having = |flag: Flag| cases.iter().filter(|case| case.has(flag)).count();
        let graded = cases.iter().filter(|case| case.gold.is_some()).count();
        let right_at_first = cases.iter().filter(|case| right_at_first(case)).count();
        let answered: Vec<f64> = cases
            .iter()
            .filter(|case| !case.has(Flag::Error))
            .map(|case| f64::from(case.rounds_run))
            .collect();
        let tokens = |count: fn(&CallRecord) -> usize| calls.iter().map(|call| count(call)).sum();
        let parsed = |parse: Parse| calls.iter().filter(|call| call.parse == parse).count();
        let elapsed_ms: u64 = calls.iter().map(|call| call.elapsed_ms).sum();
        Row {
            run,
            items: cases.len(),
            graded,
            right: having(Flag::Right),
            right_at_first,
            accuracy: (graded > 0).then(|| four_digits(share(having(Flag::Right), graded))),
            at_first: (graded > 0).then(|| four_digits(share(right_at_first, graded))),
            right_to_wrong: having(Flag::RightToWrong),
            wrong_to_right: having(Flag::WrongToRight),
            errors: having(Flag::Error),
            ties: having(Flag::Tie),
            mean_rounds: mean(&answered).map(|rounds| format!("{rounds:.2}")),
            calls: calls.len(),
            prompt_tokens: tokens(|call| call.usage.prompt_tokens),
            cached_tokens: tokens(|call| call.usage.cached_tokens),
            completion_tokens: tokens(|call| call.usage.completion_tokens),
            forced_tokens: tokens(|call| call.usage.forced_tokens),
            seconds: format!("{:.1}", elapsed_ms as f64 / 1000.0),
            parse_ok: parsed(Parse::Ok),
            parse_repaired: parsed(Parse::Repaired),
            parse_fallback: parsed(Parse::Fallback),
        }
    }
}

/// An item that errored is wrong at first too, however far it got.
fn right_at_first(case: &Case) -> bool {
    let verdict = case.at_first.as_ref().map(|mark| mark.verdict);
    !case.has(Flag::Error) && verdict == Some(Verdict::Right)
}

fn share(part: usize, whole: usize) -> f64 {
    part as f64 / whole as f64
}

fn mean(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / count)
}

/// The standard deviation with n − 1 in the denominator; none for fewer than two values.
fn sample_deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

fn four_digits(value: f64) -> String {
    format!("{value:.4}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviation_is_the_samples() {
        // Two runs of .58 and .63: the published ± .0354 (paper 001, Table 1).
        let deviation = sample_deviation(&[0.58, 0.63]).map(four_digits);
        assert_eq!(deviation.as_deref(), Some("0.0354"));
        assert_eq!(sample_deviation(&[0.5]), None);
        assert_eq!(mean(&[]), None);
    }
}
