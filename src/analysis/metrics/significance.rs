//! Whether a difference is more than chance: McNemar's exact test of two systems on the same questions, the paired t-test (MedGuards, Table 2's
//! P-values, whose test it does not name), Holm's adjustment of several P-values, and what few questions could have shown.
//!
//! Questions that stand and fall together count once, for the system that is right on more of them: of such units McNemar's is the sign test.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::bootstrap::{Unit, Units, gather};
use super::near_duplicates::units;
use super::over_runs::mean_and_std;
use crate::data::Item;
use crate::record::count;

/// The questions on which one run of either system disagrees, and how surprising their split is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct McNemar {
    /// Questions that only the left run answers rightly, or units of them that it answers rightly more often.
    pub only_left: usize,
    pub only_right: usize,
    /// Two-sided, from the binomial distribution itself; 1 where they agree everywhere.
    pub p_value: f64,
}

/// From the verdicts of one run each, over the same questions.
pub fn mcnemar(left: &[bool], right: &[bool], units: &Units) -> McNemar {
    let sides = units.0.iter().map(|unit| {
        let right_of = |side: &[bool]| unit.iter().filter(|question| side[**question]).count();
        right_of(left).cmp(&right_of(right))
    });
    let sides: Vec<Ordering> = sides.collect();
    let count = |side: Ordering| sides.iter().filter(|one| **one == side).count();
    let (only_left, only_right) = (count(Ordering::Greater), count(Ordering::Less));
    McNemar { only_left, only_right, p_value: binomial(only_left, only_right) }
}

/// min(1, 2·P(X ≤ the smaller)) for X binomial with p = ½ over both together.
fn binomial(left: usize, right: usize) -> f64 {
    let (smaller, n) = (left.min(right), left + right);
    // P(X = smaller) = C(n, smaller) / 2^n. A halving is taken whenever the product allows it, so that neither over-
    // nor underflows on the way.
    let (mut likelihood, mut halvings) = (1.0, n);
    for chosen in 1..=smaller {
        likelihood *= (n - smaller + chosen) as f64 / chosen as f64;
        while likelihood > 1.0 && halvings > 0 {
            likelihood *= 0.5;
            halvings -= 1;
        }
    }
    likelihood = libm::scalbn(likelihood, -(halvings as i32));
    // Down from there, C(n, k − 1) = C(n, k) · k / (n − k + 1).
    let mut tail = 0.0;
    for k in (0..=smaller).rev() {
        tail += likelihood;
        likelihood *= k as f64 / (n - k + 1) as f64;
    }
    (2.0 * tail).min(1.0)
}

/// The share of the mean by which equal differences may differ.
const ROUNDING: f64 = 1e-12;

/// A test over `n` differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedT {
    pub n: usize,
    /// The mean over its standard error.
    pub t: f64,
    /// Of Student's distribution with n − 1 degrees of freedom: a mean at least as far from 0.
    pub two_sided: f64,
}

/// `None` for fewer than two differences, and where all are equal: then nothing varies that could be tested. Values that differ by
/// rounding alone count as equal.
pub fn paired_t(differences: &[f64]) -> Option<PairedT> {
    let (mean, std) = mean_and_std(differences)?;
    let std = std.filter(|std| *std > mean.abs() * ROUNDING)?;
    let n = differences.len();
    let t = mean / (std / (n as f64).sqrt());
    Some(PairedT { n, t, two_sided: student(t, n - 1) })
}

/// The probability of a value at least as far from 0. For whole degrees of freedom the distribution is a finite sum (Abramowitz and
/// Stegun, 26.7.3 and 26.7.4).
fn student(t: f64, degrees: usize) -> f64 {
    let angle = libm::atan(t.abs() / (degrees as f64).sqrt());
    let (sin, cos) = libm::sincos(angle);
    // Terms of cos, cos³, … for odd degrees, of 1, cos², … for even ones.
    let (mut term, first) = match degrees % 2 {
        1 => (cos, 3),
        _ => (1.0, 2),
    };
    let mut sum = 0.0;
    if degrees > 1 {
        sum = term;
        for next in (first..degrees).step_by(2) {
            term *= cos * cos * (next - 1) as f64 / next as f64;
            sum += term;
        }
    }
    let within = match degrees % 2 {
        1 => (angle + sin * sum) * 2.0 / std::f64::consts::PI,
        _ => sin * sum,
    };
    (1.0 - within).clamp(0.0, 1.0)
}

/// The quantiles of the standard normal distribution at 0.975 and 0.8: a two-sided test at 0.05, with a power of 0.8.
const TEST_AND_POWER: f64 = 1.959_963_984_540_054 + 0.841_621_233_572_914_3;

/// Holm's step-down adjustment (Scandinavian Journal of Statistics 6, 1979): what is below 0.05 of it holds together with a chance of error
/// of 0.05 at most. In the order of `p_values`.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|one, other| p_values[*one].total_cmp(&p_values[*other]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, place) in order.into_iter().enumerate() {
        let left = (p_values.len() - rank) as f64;
        largest = largest.max(p_values[place] * left).min(1.0);
        adjusted[place] = largest;
    }
    adjusted
}

/// The smallest true difference that questions like these show in four of five repetitions, from the spread of `differences`. `None` of a single unit, and where all differences are equal.
pub fn detectable(differences: &[f64], units: &Units) -> Option<f64> {
    let units = gather(differences, units)?;
    let n = differences.len() as f64;
    let mean = differences.iter().sum::<f64>() / n;
    let residual = |unit: &Unit| unit.sum - mean * unit.size as f64;
    let squares: f64 = units.iter().map(|unit| residual(unit) * residual(unit)).sum();
    let count = units.len() as f64;
    // The standard error of their mean.
    let error = (squares * count / (count - 1.0)).sqrt() / n;
    (units.len() > 1 && error > 0.0).then_some(error * TEST_AND_POWER)
}

/// The share of items on which one of two methods is right and the other is not, as is assumed before either has answered.
const APART: f64 = 0.25;

/// What difference so many items can show, in words, before any method has answered. Near-duplicates count once.
pub fn foreseen(name: &str, items: &[Item]) -> String {
    let has_gold = |item: &&Item| match item {
        Item::Question(question) => question.gold.is_some(),
        Item::Note(note) => note.gold.is_some(),
    };
    let graded: Vec<_> = items.iter().filter(has_gold).map(Some).collect();
    let units = Units::of(&units(&graded)).0.len();
    let seen = TEST_AND_POWER * (APART / units as f64).sqrt();
    let told = match seen < APART {
        true => format!("a difference of about {:.0} points in accuracy can be told", 100.0 * seen),
        false => "too few to tell two methods".to_owned(),
    };
    format!(
        "shows      {name}: {} with gold: {told} from chance (paired, two-sided 0.05, 80 % power, if on one item in four only one of two methods is right)",
        count(graded.len(), "item")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn each(n: usize) -> Units {
        Units::of(&(0..n).collect::<Vec<_>>())
    }

    #[test]
    fn small_tables_by_hand() {
        assert_eq!(binomial(0, 0), 1.0);
        assert_eq!(binomial(1, 1), 1.0);
        assert_eq!(binomial(0, 1), 1.0);
        assert_eq!(binomial(0, 5), 2.0 / 32.0);
        assert_eq!(binomial(5, 0), 2.0 / 32.0);
        // 2 · (1 + 10 + 45) / 1024
        assert!((binomial(2, 8) - 0.109_375).abs() < 1e-15);
    }

    #[test]
    fn large_tables_neither_over_nor_underflow() {
        assert_eq!(binomial(700, 700), 1.0);
        let p = binomial(600, 700);
        assert!((0.005..0.0065).contains(&p), "{p}");
        assert_eq!(binomial(0, 5000), 0.0);
    }

    #[test]
    fn only_disagreements_count() {
        let left = [true, true, true, false, false, true];
        let right = [true, false, false, true, false, false];
        let test = mcnemar(&left, &right, &each(6));
        assert_eq!((test.only_left, test.only_right), (3, 1));
        assert_eq!(test.p_value, 0.625);
        assert_eq!(mcnemar(&[], &[], &each(0)).p_value, 1.0);
        // The second and the third are one unit, as are the fourth and the last, on which neither is ahead.
        let units = mcnemar(&left, &right, &Units::of(&[0, 1, 1, 3, 4, 3]));
        assert_eq!((units.only_left, units.only_right), (1, 0));
    }
}

#[cfg(test)]
mod paired_t_tests {
    use super::*;

    #[test]
    fn known_quantiles_of_students_distribution() {
        // The two-sided 5 % points of every table.
        for (degrees, t) in [
            (1, 12.706_204_736),
            (2, 4.302_652_730),
            (3, 3.182_446_305),
            (4, 2.776_445_105),
            (5, 2.570_581_836),
            (6, 2.446_911_851),
            (30, 2.042_272_456),
            (101, 1.983_731_003),
        ] {
            let p = student(t, degrees);
            assert!((p - 0.05).abs() < 1e-9, "{degrees}: {p}");
        }
        assert_eq!(student(0.0, 5), 1.0);
    }

    #[test]
    fn table_two_of_the_paper() {
        // Its first row against its second, six columns.
        let base = [0.589, 0.415, 0.379, 0.380, 0.395, 0.370];
        let with = [0.713, 0.609, 0.537, 0.549, 0.549, 0.472];
        let differences: Vec<f64> = base.iter().zip(with).map(|(base, with)| with - base).collect();
        let test = paired_t(&differences).unwrap();
        assert_eq!(test.n, 6);
        // By scipy.stats.ttest_rel. The paper has 4.03e-4, of a test that it does not name.
        assert!((test.t - 11.237_769_002_960_627).abs() < 1e-9, "{test:?}");
        assert!((test.two_sided - 9.744_195_554_277_6e-5).abs() < 1e-12, "{test:?}");
    }

    #[test]
    fn nothing_to_test() {
        assert_eq!(paired_t(&[0.1]), None);
        assert_eq!(paired_t(&[0.5, 0.5, 0.5]), None);
        assert_eq!(paired_t(&[]), None);
        let rounded = [0.5 - 1.0 / 3.0, 2.0 / 3.0 - 0.5, 1.0 / 6.0];
        assert!(rounded[0] != rounded[1]);
        assert_eq!(paired_t(&rounded), None);
    }
}

#[cfg(test)]
mod multiplicity_tests {
    use super::*;

    fn each(n: usize) -> Units {
        Units::of(&(0..n).collect::<Vec<_>>())
    }

    #[test]
    fn holm_multiplies_by_what_is_left_and_never_falls() {
        // R: p.adjust(c(0.01, 0.04, 0.03, 0.005), "holm")
        assert_eq!(holm(&[0.01, 0.04, 0.03, 0.005]), [0.03, 0.06, 0.06, 0.02]);
        assert_eq!(holm(&[0.6, 0.7]), [1.0, 1.0]);
        assert!(holm(&[]).is_empty());
    }

    #[test]
    fn what_can_be_seen_falls_with_the_root_of_the_questions() {
        // R: power.t.test's normal limit, (1.96 + 0.8416) · sd / √n.
        let hundred: Vec<f64> = (0..100).map(|at| f64::from(at % 2)).collect();
        let seen = detectable(&hundred, &each(100)).unwrap();
        assert!((seen - 2.801_585_2 * 0.502_518_9 / 10.0).abs() < 1e-6, "{seen}");
        let four_times = hundred.repeat(4);
        let ratio = seen / detectable(&four_times, &each(400)).unwrap();
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        // Pairs that stand and fall together are half as many.
        let units: Vec<usize> = (0..100).map(|at| at / 2 % 2 + at / 4 * 2).collect();
        let pairs: Vec<f64> = (0..100).map(|at| f64::from((at / 2 % 2) as u8)).collect();
        let together = detectable(&pairs, &Units::of(&units)).unwrap();
        assert!(together > 1.39 * seen && together < 1.45 * seen, "{together} {seen}");
        assert_eq!(detectable(&[0.5; 9], &each(9)), None);
        assert_eq!(detectable(&[0.5], &each(1)), None);
        assert_eq!(detectable(&[], &each(0)), None);
    }
}
