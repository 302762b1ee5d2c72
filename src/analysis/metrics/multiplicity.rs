//! What several comparisons at once, and few questions, leave of a difference: Holm's adjusted P-values, and what could have been seen.

use super::MetricsError;
use super::bootstrap::{Unit, gather};

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

/// The smallest true difference that questions like these show in four of five repetitions, from the spread of `differences`; `units` as in
/// [`bootstrap::mean`](super::bootstrap::mean). `None` of a single unit, and where all differences are equal.
///
/// # Errors
/// No values.
pub fn detectable(
    differences: &[f64],
    units: Option<&[usize]>,
) -> Result<Option<f64>, MetricsError> {
    let error = standard_error(differences, units)?.filter(|error| *error > 0.0);
    Ok(error.map(|error| error * TEST_AND_POWER))
}

/// The standard error of the mean of values, by their units; `None` of a single unit.
///
/// # Errors
/// No values.
fn standard_error(values: &[f64], units: Option<&[usize]>) -> Result<Option<f64>, MetricsError> {
    let units = gather(values, units)?;
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let residual = |unit: &Unit| unit.sum - mean * unit.size as f64;
    let squares: f64 = units.iter().map(|unit| residual(unit) * residual(unit)).sum();
    let count = units.len() as f64;
    let error = (squares * count / (count - 1.0)).sqrt() / values.len() as f64;
    Ok((units.len() > 1).then_some(error))
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let seen = detectable(&hundred, None).unwrap().unwrap();
        assert!((seen - 2.801_585_2 * 0.502_518_9 / 10.0).abs() < 1e-6, "{seen}");
        let four_times = hundred.repeat(4);
        let ratio = seen / detectable(&four_times, None).unwrap().unwrap();
        assert!((ratio - 2.0).abs() < 0.01, "{ratio}");
        // Pairs that stand and fall together are half as many.
        let units: Vec<usize> = (0..100).map(|at| at / 2 % 2 + at / 4 * 2).collect();
        let pairs: Vec<f64> = (0..100).map(|at| f64::from((at / 2 % 2) as u8)).collect();
        let together = detectable(&pairs, Some(&units)).unwrap().unwrap();
        assert!(together > 1.39 * seen && together < 1.45 * seen, "{together} {seen}");
        assert_eq!(detectable(&[0.5; 9], None).unwrap(), None);
        assert_eq!(detectable(&[0.5], None).unwrap(), None);
        assert!(detectable(&[], None).is_err());
    }
}
