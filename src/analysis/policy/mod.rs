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
use self::watch::NO_SCORE;
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
/// The most cases of a calibration: each is compared with those of every block.
const MOST_CASES: usize = 1 << 20;
/// Beside it a bound may lie that another machine has computed.
const ROUNDING: f64 = 1e-9;

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
        policy.contradiction().map_or(Ok(()), |what| Err(unreadable(what)))?;
        Ok(policy)
    }

    /// The bytes of its file.
    ///
    /// # Errors
    /// Values that TOML cannot say, or that [`Policy::read`] would refuse.
    pub fn to_toml(&self) -> Result<String, Failure> {
        self.contradiction().map_or(Ok(()), |what| Err(Failure::mismatch(what)))?;
        toml::to_string(self).map_err(|error| Failure::mismatch(error.to_string()))
    }

    /// What in it cannot be, or does not follow from its cases.
    fn contradiction(&self) -> Option<String> {
        let Policy { threshold, guarantee, calibration, .. } = self;
        let Calibration { cases, acted, wrong, bound, ref scores, .. } = *calibration;
        let is_share = |share: f64| share > 0.0 && share < 1.0;
        let is_score = |score: f64| score == NO_SCORE || score.is_finite() && score >= 0.0;
        let numbers = is_share(guarantee.risk) && is_share(guarantee.delta);
        let numbers = numbers && threshold.is_finite() && *threshold >= 0.0;
        if !numbers || !scores.iter().all(|(score, _)| is_score(*score)) || cases > MOST_CASES {
            return Some("a number of it is out of range".to_owned());
        }
        // Saturated, no sum is that of so few cases.
        let sum = |from: f64| {
            let counts = scores.iter().filter(|(score, _)| *score >= from).map(|(_, count)| *count);
            counts.fold(0, usize::saturating_add)
        };
        if sum(NO_SCORE) != cases {
            return Some(format!("its scores are not those of {cases} cases"));
        }
        if sum(*threshold) != acted || wrong > acted {
            return Some(format!(
                "of its cases {} have at least the threshold, not {acted} with {wrong} wrong ones",
                sum(*threshold)
            ));
        }
        let point = Point { threshold: *threshold, acted, wrong };
        if (guarantee.bound(&point, cases) - bound).abs() > ROUNDING {
            return Some("its bound does not follow from its cases".to_owned());
        }
        let holds = guarantee.passes(&point, cases);
        (!holds).then(|| format!("its cases do not show that {guarantee}"))
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

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::panel::DecodingMode;

    pub fn policy() -> Policy {
        let guarantee = Guarantee { risk: 0.1, delta: 0.1, of: Base::All };
        let point = Point { threshold: 0.5, acted: 90, wrong: 2 };
        Policy {
            wardround_policy: FORM,
            created_at: String::new(),
            synthetic: true,
            score: Score::Agreement,
            threshold: point.threshold,
            guarantee,
            calibration: Calibration {
                cases: 100,
                acted: point.acted,
                wrong: point.wrong,
                bound: guarantee.bound(&point, 100),
                runs: Vec::new(),
                scores: vec![(NO_SCORE, 4), (0.25, 6), (0.5, 40), (1.0, 50)],
            },
            subject: Subject {
                version: String::new(),
                system: "medmad".to_owned(),
                device_kind: String::new(),
                decoding: DecodingMode::Grammar,
                prompts_sha256: String::new(),
                files: Vec::new(),
                settings: toml::Table::new(),
                system_file: None,
                members: Vec::new(),
            },
        }
    }

    /// What reading the file says, after a change of its text.
    fn read(from: &str, to: &str) -> Result<Policy, String> {
        let text = policy().to_toml().unwrap();
        assert!(text.contains(from), "{text}");
        let file = tempfile::NamedTempFile::new().unwrap();
        fs_err::write(file.path(), text.replacen(from, to, 1)).unwrap();
        Policy::read(file.path()).map_err(|failure| failure.to_string())
    }

    #[test]
    fn a_policy_that_contradicts_itself_is_none() {
        assert_eq!(read("\n", "\n").unwrap(), policy());
        let scores = "[[-1.0, 4], [0.25, 6], [0.5, 40], [1.0, 50]]";
        for (from, to, said) in [
            ("threshold = 0.5", "threshold = -9.0", "out of range"),
            ("threshold = 0.5", "threshold = nan", "out of range"),
            ("threshold = 0.5", "threshold = 0.25", "96 have at least the threshold"),
            ("threshold = 0.5", "threshold = 0.75", "50 have at least the threshold"),
            ("acted = 90", "acted = 89", "not 89 with 2 wrong ones"),
            ("wrong = 2", "wrong = 91", "91 wrong ones"),
            ("wrong = 2", "wrong = 0", "its bound does not follow"),
            ("bound = 0", "bound = 1", "its bound does not follow"),
            ("risk = 0.1", "risk = 0.0001", "do not show that at most 0.01 %"),
            ("cases = 100", "cases = 1000000", "not those of 1000000 cases"),
            ("cases = 100", "cases = 4000000000", "out of range"),
            (scores, "[[0.5, 4000000000]]", "not those of 100 cases"),
            (
                scores,
                "[[0.5, 9223372036854775807], [1.0, 9223372036854775807]]",
                "not those of 100",
            ),
            (scores, "[[nan, 100]]", "out of range"),
        ] {
            let refused = read(from, to).unwrap_err();
            assert!(refused.contains(said), "{to}: {refused}");
        }
        let unproved = Policy { threshold: 0.75, ..policy() };
        assert!(unproved.to_toml().is_err());
    }
}
