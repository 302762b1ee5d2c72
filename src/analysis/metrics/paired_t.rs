//! The paired t-test: whether differences that belong together could be of mean 0 (MedGuards, Table 2's P-values, whose test it does not name).

use serde::{Deserialize, Serialize};

use super::over_runs::mean_and_std;

/// The share of the mean by which equal differences may differ.
const ROUNDING: f64 = 1e-12;

/// A test over `n` differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PairedT {
    pub n: usize,
    /// The mean over its standard error.
    pub t: f64,
    /// Of Student's distribution with n − 1 degrees of freedom: a mean at least as far from 0.
    pub two_sided: f64,
    /// A mean at least as far above 0.
    pub one_sided: f64,
}

/// `None` for fewer than two differences, and where all are equal: then nothing varies that could be tested. Values that differ by
/// rounding alone count as equal.
pub fn paired_t(differences: &[f64]) -> Option<PairedT> {
    let (mean, std) = mean_and_std(differences)?;
    let std = std.filter(|std| *std > mean.abs() * ROUNDING)?;
    let n = differences.len();
    let t = mean / (std / (n as f64).sqrt());
    let two_sided = two_sided(t, n - 1);
    let one_sided = if t > 0.0 { two_sided / 2.0 } else { 1.0 - two_sided / 2.0 };
    Some(PairedT { n, t, two_sided, one_sided })
}

/// The probability of a value at least as far from 0. For whole degrees of freedom the distribution is a finite sum (Abramowitz and
/// Stegun, 26.7.3 and 26.7.4).
fn two_sided(t: f64, degrees: usize) -> f64 {
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

#[cfg(test)]
mod tests {
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
            let p = two_sided(t, degrees);
            assert!((p - 0.05).abs() < 1e-9, "{degrees}: {p}");
        }
        assert_eq!(two_sided(0.0, 5), 1.0);
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
    fn one_side_is_half_of_two_and_knows_which() {
        let better = paired_t(&[0.1, 0.2, 0.3]).unwrap();
        assert_eq!(better.one_sided, better.two_sided / 2.0);
        let worse = paired_t(&[-0.1, -0.2, -0.3]).unwrap();
        assert_eq!((worse.two_sided, worse.one_sided), (better.two_sided, 1.0 - better.one_sided));
        // Table 2 of the paper, GPT-4o-mini: 8.3e-5 in print, 8.5e-5 on one side of this test.
        let base = [0.539, 0.374, 0.300, 0.296, 0.335, 0.210];
        let with = [0.695, 0.535, 0.571, 0.581, 0.574, 0.461];
        let differences: Vec<f64> = base.iter().zip(with).map(|(base, with)| with - base).collect();
        let test = paired_t(&differences).unwrap();
        assert!((test.one_sided - 8.462e-5).abs() < 1e-8, "{test:?}");
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
