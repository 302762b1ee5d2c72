//! Percentile bootstraps over questions, and the paired difference between two systems (MED-MAD, Table A1 and A.4).
//!
//! A resample draws units with replacement, as many as there are, and averages the values of their questions. A unit
//! is a question, or several that stand and fall together, such as a note and its near-duplicate. The units of all
//! resamples, one after the other, are the numbers below the count of units that [`SplitMix64`] seeded [`SEED`] gives,
//! so that the same questions in the same order always have the same interval.
//!
//! Where all units are equal, so are all resamples: that tells nothing of other questions. A share of 0 or 1 then has the exact interval
//! of the binomial distribution (Clopper and Pearson, Biometrika 1934), and what else is equal has none.

use itertools::Itertools;

pub use super::over_runs::Estimate;
use crate::analysis::facts::Facts;
use crate::random::SplitMix64;

/// As in the paper.
pub const RESAMPLES: usize = 10_000;
pub const SEED: u64 = 42;
/// The interval holds 95 % of the resamples.
const QUANTILES: [f64; 2] = [0.025, 0.975];
/// Units that differ by less are equal but for rounding.
const ROUNDING: f64 = 1e-12;

/// The mean accuracy of `left` less that of `right`: each question's correctness is averaged over the runs of either
/// system, which may have run more often than the other. `None` without questions.
pub fn paired_difference(
    left: &Facts<bool>,
    right: &Facts<bool>,
    units: &Units,
) -> Option<Estimate> {
    mean(&differences(left, right), units)
}

/// Each question's mean correctness of `left` less that of `right`.
pub fn differences(left: &Facts<bool>, right: &Facts<bool>) -> Vec<f64> {
    run_means(left).iter().zip(run_means(right)).map(|(left, right)| left - right).collect()
}

/// Each question's share of right answers.
pub fn run_means(runs: &Facts<bool>) -> Vec<f64> {
    runs.by_item(|is_right| f64::from(u8::from(*is_right)))
}

/// The mean of a value per question and its interval. `None` of nothing.
pub fn mean(values: &[f64], units: &Units) -> Option<Estimate> {
    let units = gather(values, units)?;
    let first = units[0].mean();
    let is_one = units.iter().all(|unit| (unit.mean() - first).abs() <= ROUNDING);
    let ends = (!is_one).then(|| ends(resample(&units)));
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let (n_questions, n_units) = (values.len(), units.len());
    Some(Estimate { n_questions, n_units, ..Estimate::of(mean, ends) })
}

/// As [`mean`], of a share from 0 to 1 per question.
pub fn share(values: &[f64], units: &Units) -> Option<Estimate> {
    let found = mean(values, units)?;
    // The probability of none of n, or of all, is that of half of what the interval leaves out.
    let bound = libm::pow(QUANTILES[0], 1.0 / found.n_units as f64);
    let ends = match (found.low, found.mean) {
        (None, 1.0) => [bound, 1.0],
        (None, 0.0) => [0.0, 1.0 - bound],
        _ => return Some(found),
    };
    Some(Estimate { low: Some(ends[0]), high: Some(ends[1]), exact: true, ..found })
}

/// A statistic that is no mean, such as a ratio, of the questions of these units, taken anew from the places of the questions in each
/// resample; and over how many resamples its interval is, without those that have no such statistic. `None` where the questions themselves
/// have none.
pub fn statistic(units: &Units, of: impl Fn(&[usize]) -> Option<f64>) -> Option<(Estimate, usize)> {
    let all: Vec<usize> = (0..units.0.iter().map(Vec::len).sum()).collect();
    let found = of(&all)?;
    let mut chosen = Vec::with_capacity(all.len());
    let drawn = draw(units.0.len(), |places| {
        chosen.clear();
        places.iter().for_each(|place| chosen.extend(&units.0[*place]));
        of(&chosen)
    });
    let drawn: Vec<f64> = drawn.into_iter().flatten().collect();
    let (first, n_resamples) = (*drawn.first()?, drawn.len());
    let is_one = drawn.iter().all(|value| (value - first).abs() <= ROUNDING);
    let ends = (!is_one).then(|| ends(drawn));
    let (n_questions, n_units) = (all.len(), units.0.len());
    Some((Estimate { n_questions, n_units, ..Estimate::of(found, ends) }, n_resamples))
}

/// The two-sided bootstrap P-value of a mean of differences: 2·(min(#≤0, #≥0) + 1) / (B + 1), at most 1, where # counts the B resamples whose
/// mean is so. It is not smaller than the sign test's exact one, were all units that are not 0 of one sign: 2^(1−n) of n such units.
pub fn p_value(differences: &[f64], units: &Units) -> Option<f64> {
    let units = gather(differences, units)?;
    let differing = units.iter().filter(|unit| unit.sum.abs() > ROUNDING).count();
    let least = libm::exp2(-(differing as f64));
    let means = resample(&units);
    let not_above = means.iter().filter(|mean| **mean <= 0.0).count();
    let not_below = means.iter().filter(|mean| **mean >= 0.0).count();
    let tail = (1 + not_above.min(not_below)) as f64 / (1 + RESAMPLES) as f64;
    Some((2.0 * tail.max(least)).min(1.0))
}

/// Questions that are drawn together: the sum of their values, and how many they are.
pub(super) struct Unit {
    pub sum: f64,
    pub size: usize,
}

impl Unit {
    fn mean(&self) -> f64 {
        self.sum / self.size as f64
    }
}

/// `None` of nothing.
pub(super) fn gather(values: &[f64], units: &Units) -> Option<Vec<Unit>> {
    let unit = |questions: &Vec<usize>| Unit {
        sum: questions.iter().fold(0.0, |sum, question| sum + values[*question]),
        size: questions.len(),
    };
    (!values.is_empty()).then(|| units.0.iter().map(unit).collect())
}

/// What is drawn: of each unit the places of its questions, in the order in which the units first come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Units(pub Vec<Vec<usize>>);

impl Units {
    /// From each question's unit, named by any number.
    pub fn of(names: &[usize]) -> Units {
        let mut units = names.iter().zip(0..).into_group_map();
        Units(names.iter().filter_map(|name| units.remove(name)).collect())
    }
}

/// What is made of the units that each resample draws of `count`.
fn draw<T>(count: usize, mut of: impl FnMut(&[usize]) -> T) -> Vec<T> {
    let mut random = SplitMix64::new(SEED);
    let mut places = vec![0; count];
    let mut one = |_| {
        places.fill_with(|| random.below(count as u64) as usize);
        of(&places)
    };
    (0..RESAMPLES).map(&mut one).collect()
}

/// The mean over the questions of each resample.
fn resample(units: &[Unit]) -> Vec<f64> {
    draw(units.len(), |places| {
        let (mut sum, mut size) = (0.0, 0);
        for place in places {
            sum += units[*place].sum;
            size += units[*place].size;
        }
        sum / size as f64
    })
}

/// The ends of the interval over the resamples, of which there must be one.
fn ends(mut drawn: Vec<f64>) -> [f64; 2] {
    drawn.sort_by(f64::total_cmp);
    QUANTILES.map(|share| quantile(&drawn, share))
}

/// The quantile of sorted values, of which there must be one, by linear interpolation with numpy's own order of operations.
pub fn quantile(sorted: &[f64], share: f64) -> f64 {
    let place = (sorted.len() - 1) as f64 * share;
    let below = place.floor() as usize;
    let above = (below + 1).min(sorted.len() - 1);
    let (start, end, step) = (sorted[below], sorted[above], place - place.floor());
    if step >= 0.5 { end - (end - start) * (1.0 - step) } else { start + (end - start) * step }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metrics::over_runs::plain;

    fn each(n: usize) -> Units {
        Units::of(&(0..n).collect::<Vec<_>>())
    }

    fn verdicts(text: &str) -> Vec<bool> {
        text.chars().map(|verdict| verdict == '1').collect()
    }

    #[test]
    fn equal_units_have_no_interval_and_say_so() {
        let estimate = mean(&[0.1; 7], &Units::of(&[0, 0, 0, 1, 1, 2, 2])).unwrap();
        assert_eq!((estimate.low, estimate.high, estimate.n_units), (None, None, 3));
        assert_eq!(estimate.to_string(), "+0.1000 (all 3 units are equal: no interval)");
        let one = mean(&[-1.0], &each(1)).unwrap();
        assert_eq!(one.to_string(), "-1.0000 (one unit alone has no interval)");
        let ratio = statistic(&each(3), |_| Some(0.25)).unwrap();
        assert_eq!((ratio.0.mean, ratio.0.low), (0.25, None));
        // Of half in every question the binomial distribution says nothing.
        assert_eq!(share(&[0.5; 4], &each(4)).unwrap().low, None);
        let shares = [1.0, 0.0, 1.0, 1.0];
        assert_eq!(share(&shares, &each(4)).unwrap(), mean(&shares, &each(4)).unwrap());
    }

    #[test]
    fn all_right_is_no_certainty() {
        // R: binom.test(10, 10)$conf.int is 0.6915029 to 1.
        let all = share(&[1.0; 10], &each(10)).unwrap();
        assert!((all.low.unwrap() - 0.691_502_892_181_239).abs() < 1e-12, "{all}");
        assert_eq!((all.high, all.exact), (Some(1.0), true));
        assert_eq!(all.ends(plain), "[0.6915, 1.0000] Clopper–Pearson");
        let none = share(&[0.0; 10], &each(10)).unwrap();
        assert!((none.high.unwrap() - 0.308_497_107_818_761).abs() < 1e-12, "{none}");
        // One question, and ten that are one.
        for found in [share(&[1.0], &each(1)), share(&[1.0; 10], &Units::of(&[4; 10]))] {
            assert!((found.unwrap().low.unwrap() - 0.025).abs() < 1e-15);
        }
    }

    #[test]
    fn a_difference_that_is_always_there_is_surprising_and_none_is_not() {
        assert_eq!(p_value(&[0.1; 20], &each(20)), Some(2.0 / 10_001.0));
        // Of few the sign test's own is larger: 0 does not count in it.
        assert!(p_value(&[0.1, 0.2, 0.3, 0.1, 0.0], &each(5)).unwrap() >= 0.125);
        assert_eq!(p_value(&[-0.1, -0.2], &each(2)), Some(0.5));
        assert_eq!(p_value(&[0.0; 5], &each(5)), Some(1.0));
        // One unit of all that there is has one mean.
        assert_eq!(p_value(&[0.5, -0.1], &Units::of(&[3, 3])), Some(1.0));
        let balanced: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { 1.0 } else { -1.0 }).collect();
        assert!(p_value(&balanced, &each(40)).unwrap() > 0.8);
        assert_eq!(p_value(&[], &each(0)), None);
    }

    #[test]
    fn swapping_the_systems_mirrors_the_difference() {
        let left = Facts(vec![verdicts("1101011010"), verdicts("1111001010")]);
        let right = Facts(vec![verdicts("0101001110")]);
        let there = paired_difference(&left, &right, &each(10)).unwrap();
        let back = paired_difference(&right, &left, &each(10)).unwrap();
        assert!((there.mean - 0.1).abs() < 1e-15, "{there}");
        assert_eq!(back.mean, -there.mean);
        // The quantiles lie at mirrored places, so they mirror up to the rounding of the interpolation.
        assert!((back.low.unwrap() + there.high.unwrap()).abs() < 1e-12);
        assert!((back.high.unwrap() + there.low.unwrap()).abs() < 1e-12);
    }

    #[test]
    fn a_system_does_not_differ_from_itself() {
        let runs = Facts(vec![verdicts("10110"), verdicts("00111")]);
        let estimate = paired_difference(&runs, &runs, &each(5)).unwrap();
        assert_eq!(estimate.to_string(), "+0.0000 (all 5 units are equal: no interval)");
    }

    #[test]
    fn questions_of_one_unit_are_drawn_together() {
        let values: Vec<f64> = (0..40).map(|i| f64::from(i % 4 / 2)).collect();
        let pairs: Vec<usize> = (0..40).map(|i| 7 * (i / 2)).collect();
        let alone = mean(&values, &each(40)).unwrap();
        let paired = mean(&values, &Units::of(&pairs)).unwrap();
        assert_eq!((paired.mean, paired.n_questions), (alone.mean, 40));
        assert_eq!(paired.n_units, 20);
        // Pairs hold equal values: half the units, so √2 the width.
        let width = |found: &Estimate| found.high.unwrap() - found.low.unwrap();
        let ratio = width(&paired) / width(&alone);
        assert!((1.3..1.55).contains(&ratio), "{ratio}");
        let own: Vec<usize> = (0..40).rev().collect();
        assert_eq!(mean(&values, &Units::of(&own)).unwrap(), alone);
    }

    #[test]
    fn quantiles_interpolate() {
        let sorted = [0.0, 1.0, 4.0, 9.0];
        assert_eq!(quantile(&sorted, 0.0), 0.0);
        assert_eq!(quantile(&sorted, 1.0), 9.0);
        assert_eq!(quantile(&sorted, 0.5), 2.5);
        assert_eq!(quantile(&[3.0], 0.975), 3.0);
    }

    #[test]
    fn of_nothing_there_is_no_mean() {
        for nothing in [Facts(vec![]), Facts(vec![vec![]])] {
            assert_eq!(paired_difference(&nothing, &nothing, &each(0)), None);
        }
    }
}
