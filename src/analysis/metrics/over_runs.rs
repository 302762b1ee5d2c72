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
        f.write_str(&plain(self.mean, 4))?;
        if let Some(std) = self.std {
            write!(f, " ± {std:.4}")?;
        }
        write!(f, " (n = {})", self.per_run.len())
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
