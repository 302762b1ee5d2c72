//! Accuracy per run, and its mean ± sample standard deviation over the runs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// Accuracy of one system on one dataset, as fractions of 1.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    pub per_run: Vec<f64>,
    pub mean: f64,
    /// Over the runs, with n − 1 in the denominator (MED-MAD, Appendix B.7); `null` for a single run.
    pub std: Option<f64>,
}

impl Accuracy {
    /// From a run's verdicts, one per item with gold; an item that errored is wrong and stays in the denominator.
    ///
    /// `None` without runs, or when one of them has no verdict.
    pub fn over_runs(runs: &[Vec<bool>]) -> Option<Accuracy> {
        let per_run: Vec<f64> = runs.iter().map(|run| share(run)).collect::<Option<_>>()?;
        let (mean, std) = mean_and_std(&per_run)?;
        Some(Accuracy { per_run, mean, std })
    }
}

impl fmt::Display for Accuracy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.4}", self.mean)?;
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

/// The mean, and the standard deviation with n − 1 in the denominator, `None` for a single value.
pub fn mean_and_std(values: &[f64]) -> Option<(f64, Option<f64>)> {
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
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
        let accuracy = Accuracy::over_runs(&[run(76, 24), run(77, 23)]).unwrap();
        assert_eq!(accuracy.per_run, [0.76, 0.77]);
        assert_eq!(accuracy.to_string(), "0.7650 ± 0.0071 (n = 2)");
    }

    #[test]
    fn one_run_has_no_deviation() {
        let accuracy = Accuracy::over_runs(&[run(1, 3)]).unwrap();
        assert_eq!((accuracy.mean, accuracy.std), (0.25, None));
        assert_eq!(accuracy.to_string(), "0.2500 (n = 1)");
    }

    #[test]
    fn nothing_has_no_accuracy() {
        assert_eq!(Accuracy::over_runs(&[]), None);
        assert_eq!(Accuracy::over_runs(&[vec![]]), None);
    }

    #[test]
    fn known_mean_and_deviation() {
        let (mean, std) = mean_and_std(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(mean, 5.0);
        assert!((std.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-15);
    }
}
