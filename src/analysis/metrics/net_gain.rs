//! NetGain: the share of questions that a debate turns right less the share that it turns wrong (MED-MAD, §4.2.2).

use serde::{Deserialize, Serialize};

use super::MetricsError;
use super::bootstrap::{self, Estimate};
use super::error::equal;

const FIGURE: &str = "NetGain";

/// What became of the questions of all runs between round 0 and the final answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NetGain {
    pub per_run: Vec<Flips>,
    /// Over the run-mean of each question (Table 2).
    pub estimate: Estimate,
}

/// The flips of one run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Flips {
    pub wrong_to_right: usize,
    pub right_to_wrong: usize,
    /// All questions, flipped or not.
    pub n_questions: usize,
}

impl Flips {
    /// From verdicts on the same questions; the accuracy of `last` less that of `round0` is the net.
    pub fn of(round0: &[bool], last: &[bool]) -> Flips {
        let count = |from: bool, to: bool| {
            let pairs = round0.iter().zip(last);
            pairs.filter(|&pair| pair == (&from, &to)).count()
        };
        Flips {
            wrong_to_right: count(false, true),
            right_to_wrong: count(true, false),
            n_questions: round0.len().min(last.len()),
        }
    }
}

/// From the verdicts `[runs][questions]` on the vote of round 0 and on the final one; `units` as in
/// [`bootstrap::mean`].
///
/// # Errors
/// No runs or no questions; runs over different numbers of questions; not as many runs on either side.
pub fn net_gain(
    round0: &[Vec<bool>],
    last: &[Vec<bool>],
    units: Option<&[usize]>,
) -> Result<NetGain, MetricsError> {
    equal(FIGURE, "runs", round0.len(), last.len())?;
    for (before, after) in round0.iter().zip(last) {
        equal(FIGURE, "questions", before.len(), after.len())?;
    }
    let pairs = round0.iter().zip(last);
    Ok(NetGain {
        per_run: pairs.map(|(before, after)| Flips::of(before, after)).collect(),
        // A question's W→R less its R→W is its correctness at the end less that at round 0.
        estimate: bootstrap::paired_difference(last, round0, units)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metrics::over_runs::OverRuns;
    use crate::random::SplitMix64;

    /// As a fraction of all questions, −1 to 1.
    fn net(flips: &Flips) -> f64 {
        (flips.wrong_to_right as f64 - flips.right_to_wrong as f64) / flips.n_questions as f64
    }

    fn runs(random: &mut SplitMix64, runs: usize, questions: usize) -> Vec<Vec<bool>> {
        let run = |_| (0..questions).map(|_| random.below(3) > 0).collect();
        (0..runs).map(run).collect()
    }

    #[test]
    fn net_gain_is_the_gain_in_accuracy_on_every_run() {
        let mut random = SplitMix64::new(1);
        for questions in [1, 2, 7, 100, 1273] {
            let round0 = runs(&mut random, 3, questions);
            let last = runs(&mut random, 3, questions);
            let gain = net_gain(&round0, &last, None).unwrap();
            let before = OverRuns::of_shares(&round0).unwrap();
            let after = OverRuns::of_shares(&last).unwrap();
            for (run, flips) in gain.per_run.iter().enumerate() {
                let gained = after.per_run[run] - before.per_run[run];
                assert!((net(flips) - gained).abs() < 1e-15, "{flips:?}: {gained}");
            }
            let difference = after.mean - before.mean;
            assert!((gain.estimate.mean - difference).abs() < 1e-14);
            assert!(gain.estimate.low <= difference + 1e-14);
            assert!(gain.estimate.high >= difference - 1e-14);
        }
    }

    #[test]
    fn flips_are_counted_by_direction() {
        let round0 = [true, true, false, false, false];
        let last = [true, false, true, true, false];
        let flips = Flips::of(&round0, &last);
        assert_eq!((flips.wrong_to_right, flips.right_to_wrong), (2, 1));
        assert_eq!(net(&flips), 0.2);
    }

    #[test]
    fn unequal_sides_are_refused() {
        let error = net_gain(&[vec![true]], &[vec![true], vec![false]], None).unwrap_err();
        assert_eq!(error.to_string(), "NetGain: 1 runs on one side, 2 on the other");
        assert!(net_gain(&[vec![true]], &[vec![true, false]], None).is_err());
        assert!(net_gain(&[], &[], None).is_err());
        assert!(net_gain(&[vec![]], &[vec![]], None).is_err());
    }
}
