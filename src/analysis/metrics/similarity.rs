//! How similar the trajectories of one question are: the mean cosine of their pairs (MED-MAD, Figures 3 and 6).

use super::over_runs::mean;
use crate::systems::exemplars::vectors::cosine;

/// The mean over all pairs of `vectors`, −1 to 1; `None` where fewer than two make no pair. A vector of zeros has the
/// cosine 0 with every other, as sentence-transformers has it.
pub fn mean_pairwise_cosine(vectors: &[Vec<f32>]) -> Option<f64> {
    let mut cosines = Vec::new();
    for (place, left) in vectors.iter().enumerate() {
        for right in &vectors[place + 1..] {
            cosines.push(cosine(left, right));
        }
    }
    mean(&cosines)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mean(vectors: &[&[f32]]) -> Option<f64> {
        let vectors: Vec<Vec<f32>> = vectors.iter().map(|vector| vector.to_vec()).collect();
        mean_pairwise_cosine(&vectors)
    }

    #[test]
    fn lengths_do_not_matter_and_every_pair_counts_once() {
        assert_eq!(mean(&[&[3.0, 4.0], &[0.3, 0.4]]), Some(1.0));
        assert_eq!(mean(&[&[1.0, 0.0], &[0.0, 2.0]]), Some(0.0));
        assert_eq!(mean(&[&[1.0, 0.0], &[-2.0, 0.0]]), Some(-1.0));
        // Pairs: 1, 0, 0.
        let three = mean(&[&[1.0, 0.0], &[1.0, 0.0], &[0.0, 1.0]]).unwrap();
        assert!((three - 1.0 / 3.0).abs() < 1e-15);
    }

    #[test]
    fn one_vector_has_no_pair_and_zeros_no_direction() {
        assert_eq!(mean(&[]), None);
        assert_eq!(mean(&[&[1.0]]), None);
        assert_eq!(mean(&[&[0.0, 0.0], &[1.0, 0.0]]), Some(0.0));
    }
}
