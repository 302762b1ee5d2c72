//! How a token is drawn: what each backend's sampler takes and gives, and the random numbers it draws with.
//!
//! Probabilities are whole numbers of 2⁻⁴⁰ of the likeliest token's, so sums do not depend on their order, and
//! the draw depends on nothing but the row, the seed and the position. Ties go to the lowest token id.

use std::cmp::Ordering;
use std::sync::Arc;

use super::Isa;
use super::lanes::{LANES, Lanes, exp, vectorised};

/// How a token is drawn. `None` switches a filter off.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// 0: the likeliest token.
    pub temperature: f32,
    /// Exactly this many of the likeliest tokens stay.
    pub top_k: Option<u32>,
    /// The fewest likeliest tokens that together hold this share stay.
    pub top_p: Option<f32>,
    /// Tokens of less than this share of the likeliest one's probability go.
    pub min_p: Option<f32>,
    /// Logits of tokens seen before, in the prompt or since, are divided by this where positive, else multiplied.
    pub repetition_penalty: Option<f32>,
    /// Subtracted from the logit of a token for each time that the completion has it already, as OpenAI defines it.
    pub frequency_penalty: Option<f32>,
    /// Subtracted once from the logit of a token that the completion has already.
    pub presence_penalty: Option<f32>,
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 1.0,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
            frequency_penalty: None,
            presence_penalty: None,
        }
    }
}

/// Temperatures below it are 0: what they leave is the likeliest token, and logits divided by them may be no numbers.
const LEAST_TEMPERATURE: f32 = 1e-5;

impl Sampling {
    /// The same, with the temperature of what it comes to.
    pub fn settled(self) -> Sampling {
        let is_greedy = self.temperature < LEAST_TEMPERATURE;
        Sampling { temperature: if is_greedy { 0.0 } else { self.temperature }, ..self }
    }

    pub fn penalty(&self) -> Option<f32> {
        self.repetition_penalty.filter(|penalty| *penalty != 1.0)
    }
}

#[derive(Clone, Debug)]
pub struct SamplingRequest {
    pub sampling: Sampling,
    /// A bit a token, `[⌈vocabulary / 32⌉]`: whether it may be drawn.
    pub allowed: Arc<[u32]>,
    /// The tokens that a repetition penalty falls on, each once.
    pub seen: Vec<u32>,
    /// What is added to the logits of these tokens, each once, after the repetition penalty. A row with any is drawn by the
    /// CPU's sampler on every machine.
    pub added: Vec<(u32, f32)>,
    /// From [`philox`].
    pub random: u64,
    /// That the token's log-probability is wanted, under the row's unchanged logits, and so many of the likeliest tokens beside it.
    pub logprobs: Option<usize>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Drawn {
    /// `None`: no token is allowed.
    pub token: Option<u32>,
    /// Whether the row's logits are no numbers to draw from: see [`are_sound`].
    pub is_broken: bool,
    /// Where they are wanted, and there is a token.
    pub logprobs: Option<TokenLogprobs>,
}

/// Natural log-probabilities under the model's own distribution: before penalties, masks and temperature.
#[derive(Clone, Debug, PartialEq)]
pub struct TokenLogprobs {
    pub chosen: f32,
    /// The token's place in the order of `top`: 1 is the likeliest.
    pub rank: u32,
    /// The likeliest tokens, likeliest first; ties by the lower id.
    pub top: Vec<(u32, f32)>,
}

pub const ONE: f32 = (1u64 << 40) as f32;

/// What makes log-probabilities of a row's logits.
#[derive(Clone, Copy, Debug)]
pub struct Normaliser {
    maximum: f32,
    logarithm: f32,
}

impl Normaliser {
    /// Of the largest logit and the sum of all masses.
    pub fn new(maximum: f32, total: u64) -> Normaliser {
        Normaliser { maximum, logarithm: libm::log(total as f64 / f64::from(ONE)) as f32 }
    }

    pub fn logprob(self, logit: f32) -> f32 {
        logit - self.maximum - self.logarithm
    }
}

/// Whether a row of logits is what a sound model gives: none of them NaN or +∞, and not all of them −∞.
pub fn are_sound(logits: &[f32]) -> bool {
    let (mut is_broken, mut is_possible) = (false, false);
    for logit in logits {
        // `|` lets the compiler take many at a time.
        is_broken |= logit.is_nan() | (*logit == f32::INFINITY);
        is_possible |= *logit > f32::NEG_INFINITY;
    }
    is_possible && !is_broken
}

/// Log-probabilities of `token` and of the `count` likeliest, under `logits`.
pub fn logprobs(logits: &[f32], token: u32, count: usize) -> TokenLogprobs {
    let maximum = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut shares = Vec::new();
    exponentials(logits, maximum, &mut shares);
    let total: u64 = shares.iter().map(|share| (share * ONE) as u64).sum();
    let normaliser = Normaliser::new(maximum, total);
    let logprob = |token: u32| normaliser.logprob(logits[token as usize]);
    let own = logits[token as usize];
    let goes_before = |(logit, id): &(&f32, u32)| {
        let order = logit.total_cmp(&own).then(token.cmp(id));
        order == Ordering::Greater
    };
    let rank = 1 + logits.iter().zip(0..).filter(goes_before).count() as u32;
    let top = likeliest(logits, count).into_iter().map(|id| (id, logprob(id))).collect();
    TokenLogprobs { chosen: logprob(token), rank, top }
}

/// `out = e^(values − subtract)`.
pub fn exponentials(values: &[f32], subtract: f32, out: &mut Vec<f32>) {
    out.clear();
    out.extend(values.iter().map(|value| value - subtract));
    exponentiate(Isa::detect(), out);
}

vectorised! {
    /// `eˣ` of each value, in place.
    fn exponentiate(values: &mut [f32]) = exponentiate_kernel
}

#[inline(always)]
fn exponentiate_kernel<L: Lanes>(values: &mut [f32]) {
    let (groups, rest) = values.as_chunks_mut::<LANES>();
    for group in groups {
        *group = exp(L::from_array(group)).to_array();
    }
    let mut last = [0.0; LANES];
    last[..rest.len()].copy_from_slice(rest);
    rest.copy_from_slice(&exp(L::from_array(&last)).to_array()[..rest.len()]);
}

/// The ids of the `count` greatest logits, greatest first; ties by the lower id.
fn likeliest(logits: &[f32], count: usize) -> Vec<u32> {
    let mut ids: Vec<u32> = Vec::with_capacity(count.min(logits.len()) + 1);
    for (id, logit) in (0..).zip(logits) {
        let beats = |other: &u32| logit.total_cmp(&logits[*other as usize]) == Ordering::Greater;
        if ids.len() == count && !ids.last().is_some_and(beats) {
            continue;
        }
        let at = ids.partition_point(|other| !beats(other));
        ids.insert(at, id);
        ids.truncate(count);
    }
    ids
}

/// `allowed` as a row of logits: minus infinity where a bit is not set, and beyond the last bit.
pub fn forbid(allowed: &[u32], logits: &mut [f32]) {
    let covered = logits.len().min(32 * allowed.len());
    let (logits, beyond) = logits.split_at_mut(covered);
    for (word, logits) in allowed.iter().zip(logits.chunks_mut(32)) {
        if *word == u32::MAX {
            continue;
        }
        for (bit, logit) in logits.iter_mut().enumerate() {
            if word >> bit & 1 == 0 {
                *logit = f32::NEG_INFINITY;
            }
        }
    }
    beyond.fill(f32::NEG_INFINITY);
}

/// The whole part of `a · b / 2⁶⁴`: with a random `a`, one of `0..b`.
pub fn multiply_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Philox 4×32-10 (Salmon et al., 2011) at counter `position` under key `seed`; its first two words.
pub fn philox(seed: u64, position: u64) -> u64 {
    let mut key = [seed as u32, (seed >> 32) as u32];
    let mut counter = [position as u32, (position >> 32) as u32, 0, 0];
    for _ in 0..10 {
        let first = u64::from(counter[0]) * 0xD251_1F53;
        let second = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (second >> 32) as u32 ^ counter[1] ^ key[0],
            second as u32,
            (first >> 32) as u32 ^ counter[3] ^ key[1],
            first as u32,
        ];
        key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
    }
    u64::from(counter[0]) << 32 | u64::from(counter[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox(0, 0), 0x6627_e8d5_e169_c58d);
        assert_ne!(philox(u64::MAX, 0), philox(0, 0));
    }

    #[test]
    fn rows_with_a_number_that_is_not_finite_are_told_from_others() {
        let (nan, infinite) = (f32::NAN, f32::INFINITY);
        assert!(are_sound(&[1.0, -infinite, f32::MAX]));
        for row in [vec![1.0, nan], vec![infinite, 1.0], vec![-infinite; 3], vec![]] {
            assert!(!are_sound(&row), "{row:?}");
        }
    }

    #[test]
    fn what_has_no_bit_is_forbidden() {
        let mut logits = vec![1.0; 70];
        forbid(&[u32::MAX, 0b101], &mut logits);
        let allowed = |id: &usize| logits[*id] == 1.0;
        let left: Vec<usize> = (0..70).filter(allowed).collect();
        assert_eq!(left, (0..33).chain([34]).collect::<Vec<_>>());
    }

    #[test]
    fn logprobs_sum_to_one() {
        let logits: Vec<f32> = (0..50).map(|id| (id as f32 * 0.7).sin() * 4.0).collect();
        let all = logprobs(&logits, 3, 50);
        let total: f32 = all.top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((total - 1.0).abs() < 1e-5);
        assert!(all.top.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        let place = all.top.iter().position(|(id, _)| *id == 3).unwrap();
        assert_eq!((all.top[place].1, all.rank as usize), (all.chosen, place + 1));
    }

    #[test]
    fn the_likeliest_are_the_first_of_all_in_order_and_ties_go_to_the_lower_id() {
        let logits: Vec<f32> = (0..300).map(|id| ((id * 37) % 11) as f32).collect();
        let mut all: Vec<u32> = (0..300).collect();
        all.sort_by(|a, b| logits[*b as usize].total_cmp(&logits[*a as usize]).then(a.cmp(b)));
        for count in [0, 1, 2, 28, 299, 300, 400] {
            assert_eq!(likeliest(&logits, count), all[..count.min(300)]);
        }
        for (place, &id) in all.iter().enumerate() {
            assert_eq!(logprobs(&logits, id, 0).rank as usize, place + 1);
        }
    }
}
