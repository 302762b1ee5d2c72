//! Which agent is Doctor A, B, C in a round: a uniform permutation, a function of its seed alone.

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

/// The generator of Steele, Lea and Flood (OOPSLA 2014): every seed is good, neighbours too.
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0. The first 2^64 mod `bound` draws are thrown away:
    /// kept, they would make the small numbers likelier.
    pub fn below(&mut self, bound: u64) -> u64 {
        let biased = bound.wrapping_neg() % bound;
        loop {
            let drawn = self.next();
            if drawn >= biased {
                return drawn % bound;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn the_generator_gives_the_published_numbers() {
        let mut random = SplitMix64::new(1_234_567);
        let drawn: Vec<u64> = (0..5).map(|_| random.next()).collect();
        let published = [
            6_457_827_717_110_365_317,
            3_203_168_211_198_807_973,
            9_817_491_932_198_370_423,
            4_593_380_528_125_082_431,
            16_408_922_859_458_223_821,
        ];
        assert_eq!(drawn, published);
    }

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
