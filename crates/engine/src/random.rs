//! Random numbers for samples, permutations, resamples and synthetic weights: a function of their seed alone.

/// 2^64 divided by the golden ratio, the usual step of SplitMix64.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// SplitMix64's number at the state `value`: 64 well-mixed bits.
pub fn mix(value: u64) -> u64 {
    let value = value.wrapping_add(STEP);
    let value = (value ^ value >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ value >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ value >> 31
}

/// The first `limit` indices of a Fisher–Yates shuffle of `0..count`: step `i` swaps place `i` with place
/// `i + below(count - i)`. A smaller limit gives the beginning of what a larger one does.
pub fn sample(count: usize, limit: usize, seed: u64) -> Vec<usize> {
    let mut random = SplitMix64::new(seed);
    let mut indices: Vec<usize> = (0..count).collect();
    let limit = limit.min(count);
    for place in 0..limit {
        let other = place + random.below((count - place) as u64) as usize;
        indices.swap(place, other);
    }
    indices.truncate(limit);
    indices
}

/// The generator of Steele, Lea and Flood (OOPSLA 2014), with the usual constants: every seed is good, neighbours too.
pub struct SplitMix64(u64);

impl SplitMix64 {
    pub fn new(seed: u64) -> SplitMix64 {
        SplitMix64(seed)
    }

    fn next(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(STEP);
        drawn
    }

    /// A number below `bound`, which is not 0: the remainder of the next number. The least 2^64 mod `bound` numbers are
    /// thrown away: kept, they would make the small remainders likelier.
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
    fn a_bound_that_does_not_divide_evenly_keeps_no_biased_number() {
        // Three quarters of the range: a third of the numbers would be drawn twice as often.
        let bound = 3 << 62;
        let mut random = SplitMix64::new(5);
        let low = (0..3000).filter(|_| random.below(bound) < bound / 3);
        let low = low.count();
        // 1000 expected, standard deviation 26; 1500 with the biased numbers kept.
        assert!((870..1130).contains(&low), "{low}");
    }
}
