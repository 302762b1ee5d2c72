//! The order of anonymous labels (Doctor A, B, C) in a round: a uniform permutation, determined by its seed.

use crate::random::SplitMix64;

/// The order in which `n` agents appear: doctor `i` is agent `permutation[i]`. Uniform over all `n!`.
///
/// The caller derives `seed` from (run seed, dataset, item, run, round), so that the labels change
/// from round to round and come out the same when the round runs again.
pub fn permutation(seed: u64, n: usize) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut order: Vec<usize> = (0..n).collect();
    for last in (1..n).rev() {
        order.swap(last, random.below(last as u64 + 1) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_permutation_is_as_likely() {
        let mut counts = BTreeMap::new();
        for seed in 0..6000 {
            *counts.entry(permutation(seed, 3)).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        // Five standard deviations of a binomial with p = 1/6.
        for (order, count) in counts {
            assert!((856..=1144).contains(&count), "{order:?}: {count}");
        }
    }

    #[test]
    fn small_panels_and_repetition() {
        assert_eq!(permutation(7, 0), [0; 0]);
        assert_eq!(permutation(7, 1), [0]);
        assert_eq!(permutation(7, 10), permutation(7, 10));
        let mut sorted = permutation(u64::MAX, 10);
        sorted.sort();
        assert_eq!(sorted, (0..10).collect::<Vec<_>>());
    }
}
