//! Act or escalate: a threshold on a score, from a hospital's own answered cases, above which so few of the cases acted upon are wrong as was
//! asked, provided that new cases come from where those came from (distribution-free risk control; Bates et al., JACM 2021).
//!
//! A policy is a file, bound to the weights, prompts, settings and version that it was calibrated with ([`Subject`]).

mod binomial;
mod calibrate;
mod score;
mod shift;
mod subject;
mod threshold;
mod watch;

use std::path::Path;

use serde::{Deserialize, Serialize};

pub use self::calibrate::{Calibrated, Choice, Decided, calibrate, curves, decisions};
pub use self::score::{Because, Score};
pub use self::subject::Subject;
pub use self::threshold::{Base, Case, Guarantee, Point, curve};
pub use self::watch::Watch;
use crate::diagnosis::Failure;
use crate::outside;
use crate::record::{Advice, CallLine, Decision, ItemLine};

/// A policy's file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Policy {
    /// The number of the file's form.
    pub wardround_policy: u32,
    pub created_at: String,
    pub synthetic: bool,
    pub score: Score,
    /// Acted upon is what has at least this score.
    pub threshold: f64,
    pub guarantee: Guarantee,
    pub calibration: Calibration,
    pub subject: Subject,
}

/// The number of the file's form.
const FORM: u32 = 1;

/// The cases that the threshold comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Calibration {
    pub cases: usize,
    pub acted: usize,
    pub wrong: usize,
    /// What the share is at most at this threshold, with the guarantee's confidence.
    pub bound: f64,
    /// The sums of the runs' plans.
    pub runs: Vec<String>,
    /// Each distinct score and how many cases have it; −1 of cases that nobody would act upon.
    pub scores: Vec<(f64, usize)>,
}

impl Policy {
    /// # Errors
    /// A file that is no policy, or one of another form.
    pub fn read(path: &Path) -> Result<Policy, Failure> {
        let unreadable = |reason: String| {
            let hint = "`wardround calibrate` makes policies";
            Failure::usage(format!("{} is no policy: {reason}", path.display()), hint)
        };
        let bytes = outside::file(path)?;
        let text = str::from_utf8(&bytes).map_err(|error| unreadable(error.to_string()))?;
        let policy: Policy =
            toml::from_str(text).map_err(|error| unreadable(error.message().to_owned()))?;
        if policy.wardround_policy != FORM {
            return Err(unreadable(format!("its form is {}", policy.wardround_policy)));
        }
        let Guarantee { risk, delta, .. } = policy.guarantee;
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        match is_share(risk) && is_share(delta) && policy.threshold.is_finite() {
            true => Ok(policy),
            false => Err(unreadable("a number of it is out of range".to_owned())),
        }
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// Values that TOML cannot say.
    pub fn to_toml(&self) -> Result<String, Failure> {
        toml::to_string(self).map_err(|error| Failure::mismatch(error.to_string()))
    }

    /// Refuses to judge anything but what it was calibrated with.
    ///
    /// # Errors
    /// The differences.
    pub fn keep_to(&self, subject: &Subject) -> Result<(), Failure> {
        let differences = self.subject.differences(subject)?;
        if differences.is_empty() {
            return Ok(());
        }
        let differences: Vec<String> = differences.iter().map(ToString::to_string).collect();
        let message = format!(
            "the policy was calibrated with something else, so that its guarantee says nothing here:\n  {}",
            differences.join("\n  ")
        );
        Err(Failure::usage(message, "calibrate anew, or use what it was calibrated with"))
    }

    /// What to do with this outcome by itself; `calls` are the case's.
    pub fn decide(&self, line: &ItemLine, calls: &[CallLine]) -> Decision {
        self.judge(self.score.of(line, calls))
    }

    fn judge(&self, score: Result<f64, Because>) -> Decision {
        let threshold = self.threshold;
        let because = match score {
            Ok(score) if score >= threshold => None,
            Ok(score) => Some(Because::Unsure { score, threshold }),
            Err(because) => Some(because),
        };
        Decision {
            decision: if because.is_none() { Advice::Act } else { Advice::Escalate },
            because: because.map(|because| because.to_string()),
            score: score.ok(),
        }
    }

    /// The scores of its calibration, one a case.
    fn scores(&self) -> Vec<f64> {
        let scores = self.calibration.scores.iter();
        scores.flat_map(|(score, count)| std::iter::repeat_n(*score, *count)).collect()
    }
}
