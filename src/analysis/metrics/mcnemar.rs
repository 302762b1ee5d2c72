//! McNemar's exact test: whether two systems err equally often on the same questions.
//!
//! Questions that stand and fall together count once, for the system that is right on more of them: of such units it is the sign test.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use super::bootstrap::together;

/// The questions on which one run of either system disagrees, and how surprising their split is.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct McNemar {
    /// Questions that only the left run answers rightly, or units of them that it answers rightly more often.
    pub only_left: usize,
    pub only_right: usize,
    /// Two-sided, from the binomial distribution itself; 1 where they agree everywhere.
    pub p_value: f64,
}

/// From the verdicts of one run each, over the same questions; `units` as in [`bootstrap::mean`](super::bootstrap::mean).
pub fn mcnemar(left: &[bool], right: &[bool], units: Option<&[usize]>) -> McNemar {
    let alone: Vec<usize> = (0..left.len()).collect();
    let units = units.unwrap_or(&alone);
    let sides = together(units).into_iter().map(|unit| {
        let right_of = |side: &[bool]| unit.iter().filter(|question| side[**question]).count();
        right_of(left).cmp(&right_of(right))
    });
    let sides: Vec<Ordering> = sides.collect();
    let count = |side: Ordering| sides.iter().filter(|one| **one == side).count();
    let (only_left, only_right) = (count(Ordering::Greater), count(Ordering::Less));
    McNemar { only_left, only_right, p_value: two_sided(only_left, only_right) }
}

/// min(1, 2·P(X ≤ the smaller)) for X binomial with p = ½ over both together.
fn two_sided(left: usize, right: usize) -> f64 {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_tables_by_hand() {
        assert_eq!(two_sided(0, 0), 1.0);
        assert_eq!(two_sided(1, 1), 1.0);
        assert_eq!(two_sided(0, 1), 1.0);
        assert_eq!(two_sided(0, 5), 2.0 / 32.0);
        assert_eq!(two_sided(5, 0), 2.0 / 32.0);
        // 2 · (1 + 10 + 45) / 1024
        assert!((two_sided(2, 8) - 0.109_375).abs() < 1e-15);
    }

    #[test]
    fn large_tables_neither_over_nor_underflow() {
        assert_eq!(two_sided(700, 700), 1.0);
        let p = two_sided(600, 700);
        assert!((0.005..0.0065).contains(&p), "{p}");
        assert_eq!(two_sided(0, 5000), 0.0);
    }

    #[test]
    fn only_disagreements_count() {
        let left = [true, true, true, false, false, true];
        let right = [true, false, false, true, false, false];
        let test = mcnemar(&left, &right, None);
        assert_eq!((test.only_left, test.only_right), (3, 1));
        assert_eq!(test.p_value, 0.625);
        assert_eq!(mcnemar(&[], &[], None).p_value, 1.0);
        // The second and the third are one unit, as are the fourth and the last, on which neither is ahead.
        let units = mcnemar(&left, &right, Some(&[0, 1, 1, 3, 4, 3]));
        assert_eq!((units.only_left, units.only_right), (1, 0));
    }
}
