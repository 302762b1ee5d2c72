//! A share or a mean of each run, and its mean ± sample standard deviation over the runs.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::number::plain;

/// One figure, such as accuracy, of one system on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverRuns {
    pub per_run: Vec<f64>,
    pub mean: f64,
    /// Over the runs, with n − 1 in the denominator (MED-MAD, Appendix B.7); `null` for a single run.
    pub std: Option<f64>,
}

impl OverRuns {
    /// From a value per run; `None` without runs.
    pub fn of(per_run: Vec<f64>) -> Option<OverRuns> {
        let (mean, std) = mean_and_std(&per_run)?;
        Some(OverRuns { per_run, mean, std })
    }

    /// The share of `true` of each run. Of verdicts, one per item with gold, it is the accuracy: an item that errored is
    /// wrong and stays in the denominator.
    ///
    /// `None` without runs, or when one of them has no verdict.
    pub fn of_shares(runs: &[Vec<bool>]) -> Option<OverRuns> {
        OverRuns::of(runs.iter().map(|run| share(run)).collect::<Option<_>>()?)
    }
}

impl fmt::Display for OverRuns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Spread::from(self).fmt(f)
    }
}

/// A mean as it is printed. ± stands beside it only where the runs differ: runs that give the same replies, as those of a greedy model, are
/// one sample, and 0 would be read as its error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    pub mean: f64,
    /// `null` for a single value.
    pub std: Option<f64>,
    /// Of how many runs; `None` of what is no mean over runs, or a paper's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<usize>,
}

/// What a mean of equal values is off, at most.
const EQUAL: f64 = 1e-12;

impl Spread {
    pub fn deviation(&self) -> Option<f64> {
        self.std.filter(|std| self.n.is_none() || *std > EQUAL)
    }

    /// What the mean is of, as a sentence has it.
    pub fn in_words(&self) -> String {
        let n = self.n.unwrap_or(1);
        match (self.std, self.deviation()) {
            (None, _) => format!("n = {n} run, so no standard deviation"),
            (_, None) => format!("the same in all of n = {n} runs, so no standard deviation"),
            _ => format!("mean and sample standard deviation over n = {n} runs"),
        }
    }
}

impl From<&OverRuns> for Spread {
    fn from(OverRuns { per_run, mean, std }: &OverRuns) -> Spread {
        Spread { mean: *mean, std: *std, n: Some(per_run.len()) }
    }
}

impl fmt::Display for Spread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&plain(self.mean, 4))?;
        let deviation = self.deviation();
        if let Some(std) = deviation {
            write!(f, " ± {std:.4}")?;
        }
        match self.n {
            Some(n) if self.std != deviation => write!(f, " (the same in all {n} runs)"),
            Some(n) => write!(f, " (n = {n})"),
            None => Ok(()),
        }
    }
}

/// The share of `true`; `None` of nothing.
fn share(verdicts: &[bool]) -> Option<f64> {
    let right = verdicts.iter().filter(|&&verdict| verdict).count();
    (!verdicts.is_empty()).then(|| right as f64 / verdicts.len() as f64)
}

/// `None` of nothing.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The mean, and the standard deviation with n − 1 in the denominator, `None` for a single value.
pub fn mean_and_std(values: &[f64]) -> Option<(f64, Option<f64>)> {
    let mean = mean(values)?;
    let n = values.len() as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    let std = (values.len() > 1).then(|| (squares / (n - 1.0)).sqrt());
    Some((mean, std))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(right: usize, wrong: usize) -> Vec<bool> {
        [vec![true; right], vec![false; wrong]].concat()
    }

    #[test]
    fn two_runs_have_the_sample_deviation() {
        // .76 and .77 of 100 items: the ± .0071 that MED-MAD's Table 1 prints.
        let accuracy = OverRuns::of_shares(&[run(76, 24), run(77, 23)]).unwrap();
        assert_eq!(accuracy.per_run, [0.76, 0.77]);
        assert_eq!(accuracy.to_string(), "0.7650 ± 0.0071 (n = 2)");
    }

    /// 0.1 three times is 0.30000000000000004.
    #[test]
    fn runs_that_all_come_to_the_same_have_no_plus_and_minus() {
        for right in [1, 7] {
            let runs = [run(right, 10 - right), run(right, 10 - right), run(right, 10 - right)];
            let accuracy = OverRuns::of_shares(&runs).unwrap();
            assert!(accuracy.std.unwrap() < EQUAL);
            assert_eq!(accuracy.to_string(), format!("0.{right}000 (the same in all 3 runs)"));
            assert_eq!(Spread::from(&accuracy).deviation(), None);
        }
        // What a paper prints stands as it does.
        let paper = Spread { mean: 0.62, std: Some(0.0), n: None };
        assert_eq!(paper.to_string(), "0.6200 ± 0.0000");
    }

    #[test]
    fn one_run_has_no_deviation() {
        let accuracy = OverRuns::of_shares(&[run(1, 3)]).unwrap();
        assert_eq!((accuracy.mean, accuracy.std), (0.25, None));
        assert_eq!(accuracy.to_string(), "0.2500 (n = 1)");
    }

    #[test]
    fn nothing_has_no_accuracy() {
        assert_eq!(OverRuns::of_shares(&[]), None);
        assert_eq!(OverRuns::of_shares(&[vec![]]), None);
        assert_eq!(OverRuns::of(vec![]), None);
    }

    #[test]
    fn known_mean_and_deviation() {
        let (mean, std) = mean_and_std(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(mean, 5.0);
        assert!((std.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-15);
    }
}
