//! Figures with their spread, and how they are written: a share or a mean of each run and its sample standard deviation over the runs; a mean
//! over questions and its interval. What rounds to zero has no minus before it.

use std::fmt;

use crate::record::count;
use serde::{Deserialize, Serialize};

/// One figure, such as accuracy, of one system on one dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
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
            Some(n) if self.std != deviation => write!(f, " (the same in all {})", count(n, "run")),
            Some(n) => write!(f, " ({})", count(n, "run")),
            None => Ok(()),
        }
    }
}

/// `None` of nothing.
pub fn share(part: usize, of: usize) -> Option<f64> {
    (of > 0).then(|| part as f64 / of as f64)
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

/// With as many digits behind the point.
pub fn plain(value: f64, digits: usize) -> String {
    without_minus(format!("{value:.digits$}"))
}

/// A difference, with its sign.
pub fn signed(value: f64, digits: usize) -> String {
    let text = without_minus(format!("{value:.digits$}"));
    if text.starts_with(['-', 'N']) { text } else { format!("+{text}") }
}

fn without_minus(text: String) -> String {
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| matches!(c, '0' | '.')) => rest.to_owned(),
        _ => text,
    }
}

/// A mean over questions and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    pub mean: f64,
    /// `null` where all units are equal, which have no interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub n_questions: usize,
    /// What was drawn; fewer than the questions where several make one unit.
    pub n_units: usize,
    /// Whether the interval is Clopper and Pearson's, for all units are right, or none is.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exact: bool,
}

impl Estimate {
    /// Over what, is not said, as in a paper's tables; these may print no interval.
    pub fn of(mean: f64, ends: Option<[f64; 2]>) -> Estimate {
        let (low, high) = ends.map(|[low, high]| (low, high)).unzip();
        Estimate { mean, low, high, n_questions: 0, n_units: 0, exact: false }
    }

    /// The interval as a person reads it, or why there is none.
    pub fn ends(&self, number: fn(f64, usize) -> String) -> String {
        match self.low.zip(self.high) {
            Some((low, high)) => {
                let by = if self.exact { " Clopper–Pearson" } else { "" };
                format!("[{}, {}]{by}", number(low, 4), number(high, 4))
            }
            None if self.n_units == 0 => String::new(),
            None if self.n_units == 1 => "(one unit alone has no interval)".to_owned(),
            None => format!("(all {} units are equal: no interval)", self.n_units),
        }
    }

    /// The same less what is known without spread.
    pub fn less(self, known: f64) -> Estimate {
        let less = |end: Option<f64>| end.map(|end| end - known);
        Estimate { mean: self.mean - known, low: less(self.low), high: less(self.high), ..self }
    }

    /// How many units the items are, where they are not as many.
    pub fn drawn_together(&self) -> Option<String> {
        (self.n_units < self.n_questions).then(|| {
            let [items, units] = [(self.n_questions, "item"), (self.n_units, "unit")].map(|(n, noun)| count(n, noun));
            format!("{items} are {units}: questions that ask the same, and notes that share three fifths of their words, are drawn together and count once in a test.")
        })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let told = format!("{} {}", signed(self.mean, 4), self.ends(signed));
        f.write_str(told.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::facts::Facts;

    fn accuracy_of(runs: Vec<Vec<bool>>) -> Option<OverRuns> {
        Facts(runs).share(|is_right| *is_right)
    }

    fn run(right: usize, wrong: usize) -> Vec<bool> {
        [vec![true; right], vec![false; wrong]].concat()
    }

    #[test]
    fn two_runs_have_the_sample_deviation() {
        // .76 and .77 of 100 items: the ± .0071 that MED-MAD's Table 1 prints.
        let accuracy = accuracy_of(vec![run(76, 24), run(77, 23)]).unwrap();
        assert_eq!(accuracy.per_run, [0.76, 0.77]);
        assert_eq!(accuracy.to_string(), "0.7650 ± 0.0071 (2 runs)");
    }

    /// 0.1 three times is 0.30000000000000004.
    #[test]
    fn runs_that_all_come_to_the_same_have_no_plus_and_minus() {
        for right in [1, 7] {
            let accuracy = accuracy_of(vec![run(right, 10 - right); 3]).unwrap();
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
        let accuracy = accuracy_of(vec![run(1, 3)]).unwrap();
        assert_eq!((accuracy.mean, accuracy.std), (0.25, None));
        assert_eq!(accuracy.to_string(), "0.2500 (1 run)");
    }

    #[test]
    fn nothing_has_no_accuracy() {
        assert_eq!(accuracy_of(vec![]), None);
        assert_eq!(accuracy_of(vec![vec![]]), None);
        assert_eq!(OverRuns::of(vec![]), None);
    }

    #[test]
    fn known_mean_and_deviation() {
        let (mean, std) = mean_and_std(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]).unwrap();
        assert_eq!(mean, 5.0);
        assert!((std.unwrap() - (32.0_f64 / 7.0).sqrt()).abs() < 1e-15);
    }
}

#[cfg(test)]
mod number_tests {
    use super::*;

    #[test]
    fn what_rounds_to_zero_has_no_minus() {
        assert_eq!(signed(-1e-17, 4), "+0.0000");
        assert_eq!(signed(-0.0, 1), "+0.0");
        assert_eq!(signed(-0.00005001, 4), "-0.0001");
        assert_eq!(signed(0.02, 4), "+0.0200");
        assert_eq!(plain(-0.00001, 4), "0.0000");
        assert_eq!(plain(-0.4, 0), "0");
        assert_eq!(plain(-0.25, 4), "-0.2500");
    }
}
