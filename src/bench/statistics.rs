//! Mean, spread and the worst of a few repetitions.

use serde::Serialize;

/// A summary of one figure's repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Summary {
    pub mean: f64,
    /// Of the sample (n − 1); `None` for a single repetition.
    pub standard_deviation: Option<f64>,
    pub minimum: f64,
}

impl Summary {
    /// `None` without samples.
    pub fn of(samples: &[f64]) -> Option<Summary> {
        let count = samples.len() as f64;
        let minimum = samples.iter().copied().min_by(f64::total_cmp)?;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        Some(Summary {
            mean,
            standard_deviation: (count > 1.0).then(|| (squares / (count - 1.0)).sqrt()),
            minimum,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_samples() {
        let summary = Summary::of(&[4.0, 2.0, 6.0]).unwrap();
        let expected = Summary { mean: 4.0, standard_deviation: Some(2.0), minimum: 2.0 };
        assert_eq!(summary, expected);
        assert_eq!(Summary::of(&[3.0]).unwrap().standard_deviation, None);
        assert_eq!(Summary::of(&[]), None);
    }
}
