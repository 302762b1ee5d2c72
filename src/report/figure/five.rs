//! The five numbers of a box plot, as Tukey draws it.

use crate::analysis::metrics::bootstrap::quantile;

/// Quartiles by linear interpolation, whiskers to the last value within 1.5 interquartile ranges, and what lies beyond.
#[derive(Clone, Debug, PartialEq)]
pub struct Five {
    pub low: f64,
    pub first: f64,
    pub median: f64,
    pub third: f64,
    pub high: f64,
    pub outliers: Vec<f64>,
    pub n: usize,
}

impl Five {
    /// `None` without finite values.
    pub fn of(values: &[f64]) -> Option<Five> {
        let mut sorted: Vec<f64> = values.iter().copied().filter(|v| v.is_finite()).collect();
        sorted.sort_by(f64::total_cmp);
        if sorted.is_empty() {
            return None;
        }
        let [first, median, third] = [0.25, 0.5, 0.75].map(|share| quantile(&sorted, share));
        let reach = 1.5 * (third - first);
        let is_within = |value: &f64| (first - reach..=third + reach).contains(value);
        let (within, outliers): (Vec<f64>, Vec<f64>) = sorted.iter().partition(|v| is_within(v));
        Some(Five {
            low: within.first().copied().unwrap_or(first),
            high: within.last().copied().unwrap_or(third),
            first,
            median,
            third,
            outliers,
            n: sorted.len(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_by_hand() {
        let five = Five::of(&[4.0, 1.0, 3.0, 2.0, 20.0, f64::NAN]).unwrap();
        assert_eq!((five.first, five.median, five.third), (2.0, 3.0, 4.0));
        assert_eq!((five.low, five.high, five.n), (1.0, 4.0, 5));
        assert_eq!(five.outliers, [20.0]);
        let even = Five::of(&[0.0, 1.0]).unwrap();
        assert_eq!((even.first, even.median, even.third), (0.25, 0.5, 0.75));
    }

    #[test]
    fn one_value_is_a_line_and_none_is_nothing() {
        let one = Five::of(&[0.5]).unwrap();
        assert_eq!((one.low, one.median, one.high), (0.5, 0.5, 0.5));
        assert!(one.outliers.is_empty());
        assert_eq!(Five::of(&[]), None);
    }
}
