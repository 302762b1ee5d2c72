//! NetGain: what a debate turns right less what it turns wrong (MED-MAD, §4.2.2), in both of its readings.
//!
//! Over all questions it is the gain in accuracy. Over those that could turn (right at the end, of those wrong at round 0, less wrong at
//! the end, of those right at round 0) it is a difference of two conditional rates, whose means and intervals are wider: those of Table 2.

use serde::{Deserialize, Serialize};

use super::bootstrap::{self, Estimate, Units};
use super::over_runs::{mean, share};
use crate::analysis::facts::Facts;

/// What became of the questions of all runs between round 0 and the final answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct NetGain {
    /// Shares of all questions, over the run-mean of each question.
    #[serde(flatten)]
    pub estimate: Estimate,
    /// Shares of all questions, one a run; their difference is the run's net gain.
    pub wrong_to_right: Vec<f64>,
    pub right_to_wrong: Vec<f64>,
    /// The other reading; `null` where no run has a question that was wrong at round 0, or none that was right.
    pub conditional: Option<Conditional>,
}

/// NetGain as a difference of conditional rates: those of a run, then their means over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Conditional {
    /// Both rates are taken anew in each resample.
    pub estimate: Estimate,
    /// P(right at the end | wrong at round 0), one a run; `null` where none was wrong.
    pub wrong_to_right: Vec<Option<f64>>,
    /// P(wrong at the end | right at round 0), one a run; `null` where none was right.
    pub right_to_wrong: Vec<Option<f64>>,
    /// The resamples that the interval is over; others lack a question that was wrong at round 0, or one that was right.
    pub n_resamples: usize,
}

/// The chosen questions of one run by whether they were right at round 0, then by whether they are at the end.
type Flips = [[usize; 2]; 2];

fn flips(round0: &[bool], last: &[bool], chosen: &[usize]) -> Flips {
    let mut flips = Flips::default();
    for question in chosen {
        flips[usize::from(round0[*question])][usize::from(last[*question])] += 1;
    }
    flips
}

/// Of the questions that were wrong at round 0, the share that is right at the end; `None` where none was.
fn gained([[stayed, gained], _]: &Flips) -> Option<f64> {
    share(*gained, stayed + gained)
}

/// Of the questions that were right at round 0, the share that is wrong at the end; `None` where none was.
fn lost([_, [lost, stayed]]: &Flips) -> Option<f64> {
    share(*lost, lost + stayed)
}

/// The mean of a rate over the runs that have it.
fn rate(runs: &[Flips], of: fn(&Flips) -> Option<f64>) -> Option<f64> {
    mean(&runs.iter().filter_map(of).collect::<Vec<_>>())
}

/// From the verdicts on the vote of round 0 and on the final one. `None` without questions.
pub fn net_gain(round0: &Facts<bool>, last: &Facts<bool>, units: &Units) -> Option<NetGain> {
    // A question's W→R less its R→W is its correctness at the end less that at round 0.
    let estimate = bootstrap::paired_difference(last, round0, units)?;
    let by_run = |chosen: &[usize]| {
        let runs = round0.0.iter().zip(&last.0);
        runs.map(|(before, after)| flips(before, after, chosen)).collect::<Vec<Flips>>()
    };
    let net = |chosen: &[usize]| {
        let runs = by_run(chosen);
        Some(rate(&runs, gained)? - rate(&runs, lost)?)
    };
    let per_run = by_run(&(0..estimate.n_questions).collect::<Vec<_>>());
    let conditional = bootstrap::statistic(units, net);
    let conditional = conditional.map(|(estimate, n_resamples)| Conditional {
        estimate,
        wrong_to_right: per_run.iter().map(gained).collect(),
        right_to_wrong: per_run.iter().map(lost).collect(),
        n_resamples,
    });
    let shares = |of: fn(&Flips) -> usize| {
        per_run.iter().map(|run| of(run) as f64 / estimate.n_questions as f64).collect()
    };
    let wrong_to_right = shares(|[[_, gained], _]| *gained);
    let right_to_wrong = shares(|[_, [lost, _]]| *lost);
    Some(NetGain { estimate, wrong_to_right, right_to_wrong, conditional })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::SplitMix64;

    fn each(n: usize) -> Units {
        Units::of(&(0..n).collect::<Vec<_>>())
    }

    fn runs(random: &mut SplitMix64, runs: usize, questions: usize) -> Facts<bool> {
        let run = |_| (0..questions).map(|_| random.below(3) > 0).collect();
        Facts((0..runs).map(run).collect())
    }

    #[test]
    fn net_gain_is_the_gain_in_accuracy_on_every_run() {
        let mut random = SplitMix64::new(1);
        for questions in [1, 2, 7, 100, 1273] {
            let round0 = runs(&mut random, 3, questions);
            let last = runs(&mut random, 3, questions);
            let gain = net_gain(&round0, &last, &each(questions)).unwrap();
            let [before, after] =
                [&round0, &last].map(|facts| facts.share(|is_right| *is_right).unwrap());
            for (run, gained) in gain.wrong_to_right.iter().enumerate() {
                let net = gained - gain.right_to_wrong[run];
                let expected = after.per_run[run] - before.per_run[run];
                assert!((net - expected).abs() < 1e-14, "{net}: {expected}");
            }
            let difference = after.mean - before.mean;
            assert!((gain.estimate.mean - difference).abs() < 1e-14);
            // One question alone has no interval.
            assert!(gain.estimate.low.is_none_or(|low| low <= difference + 1e-14));
            assert!(gain.estimate.high.is_none_or(|high| high >= difference - 1e-14));
            assert!(questions > 1 || gain.estimate.low.is_none());
        }
    }

    #[test]
    fn flips_are_counted_by_direction() {
        let round0 = [true, true, false, false, false];
        let last = [true, false, true, true, false];
        assert_eq!(flips(&round0, &last, &[0, 1, 2, 3, 4]), [[1, 2], [1, 1]]);
    }

    /// 61 of 100 questions wrong at first: 13 turn right, and 4 of the other 39 turn wrong.
    #[test]
    fn conditional_rates_are_of_the_questions_that_could_turn() {
        let round0: Vec<bool> = (0..100).map(|question| question >= 61).collect();
        let last: Vec<bool> =
            (0..100).map(|question| question < 13 || (65..100).contains(&question)).collect();
        let gain = net_gain(&Facts(vec![round0; 3]), &Facts(vec![last; 3]), &each(100)).unwrap();
        let found = gain.conditional.unwrap();
        assert_eq!(found.wrong_to_right, [Some(13.0 / 61.0); 3]);
        assert_eq!(found.right_to_wrong, [Some(4.0 / 39.0); 3]);
        assert!((found.estimate.mean - (13.0 / 61.0 - 4.0 / 39.0)).abs() < 1e-15);
        assert!((gain.estimate.mean - 0.09).abs() < 1e-15);
        let width = |estimate: &Estimate| estimate.high.unwrap() - estimate.low.unwrap();
        assert!(width(&found.estimate) > 1.5 * width(&gain.estimate), "{found:?}");
        assert_eq!(found.n_resamples, bootstrap::RESAMPLES);
    }

    #[test]
    fn a_rate_of_nothing_is_left_out_and_counted() {
        // The second run has nothing that was wrong.
        let round0 = Facts(vec![vec![false, true, true], vec![true; 3]]);
        let last = Facts(vec![vec![true, true, true], vec![true, true, false]]);
        let found = net_gain(&round0, &last, &each(3)).unwrap().conditional.unwrap();
        assert_eq!(found.wrong_to_right, [Some(1.0), None]);
        assert_eq!(found.right_to_wrong, [Some(0.0), Some(1.0 / 3.0)]);
        assert_eq!(found.estimate.mean, 1.0 - 1.0 / 6.0);
        // Some resamples have no question that was wrong in a run.
        assert!((6_500..7_500).contains(&found.n_resamples), "{}", found.n_resamples);
        let none =
            net_gain(&Facts(vec![vec![true; 3]]), &Facts(vec![vec![false; 3]]), &each(3)).unwrap();
        assert_eq!(none.conditional, None);
    }

    #[test]
    fn nothing_has_no_gain() {
        for nothing in [Facts(vec![]), Facts(vec![vec![]])] {
            assert_eq!(net_gain(&nothing, &nothing, &each(0)), None);
        }
    }
}
