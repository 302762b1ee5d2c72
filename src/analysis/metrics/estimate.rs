//! An estimate: a mean over questions, its interval, and what that is over.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::number::signed;

/// A mean over questions and its 95 % interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Estimate {
    pub mean: f64,
    /// `null` where all units are equal, which have no interval.
    pub low: Option<f64>,
    pub high: Option<f64>,
    pub n_questions: usize,
    /// What was drawn; fewer than the questions where several make one unit.
    pub n_units: usize,
    /// Whether the interval is Clopper and Pearson's, for all units are right, or none is.
    #[serde(default, skip_serializing_if = "is_false")]
    pub exact: bool,
}

fn is_false(value: &bool) -> bool {
    !value
}

impl Estimate {
    /// The interval as a person reads it, or why there is none.
    pub fn ends(&self, number: fn(f64, usize) -> String) -> String {
        match self.low.zip(self.high) {
            Some((low, high)) => {
                let by = if self.exact { " Clopper–Pearson" } else { "" };
                format!("[{}, {}]{by}", number(low, 4), number(high, 4))
            }
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
        let Estimate { n_questions, n_units, .. } = self;
        (n_units < n_questions).then(|| {
            format!("{n_questions} items are {n_units} units: questions that ask the same, and notes that share three fifths of their words, are drawn together and count once in a test.")
        })
    }
}

impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", signed(self.mean, 4), self.ends(signed))
    }
}
