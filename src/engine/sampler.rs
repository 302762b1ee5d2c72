//! From a row of logits to a token: penalties, temperature, top-k, top-p, min-p and a draw, all in integers.
//!
//! Probabilities are whole numbers of 2⁻⁴⁰ of the likeliest token's, so sums do not depend on their order, and
//! the draw depends on nothing but the row, the seed and the position. Ties go to the lowest token id.

use crate::ops::Ops;

use super::request::TokenLogprobs;

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
}

impl Default for Sampling {
    fn default() -> Sampling {
        Sampling {
            temperature: 1.0,
            top_k: None,
            top_p: None,
            min_p: None,
            repetition_penalty: None,
        }
    }
}

/// The likeliest token's mass.
const ONE: f32 = (1u64 << 40) as f32;

/// Buffers of one draw, kept between draws.
#[derive(Debug, Default)]
pub struct Sampler {
    exponentials: Vec<f32>,
    /// Token ids and masses that may be drawn.
    kept: Vec<(u32, u64)>,
}

impl Sampler {
    /// Draws from `logits`, which are changed on the way. Minus infinity marks what must not be drawn; `None` if
    /// that is everything. `seen` holds the tokens that a repetition penalty falls on, each once.
    pub fn draw(
        &mut self,
        ops: &Ops,
        logits: &mut [f32],
        seen: &[u32],
        sampling: &Sampling,
        (seed, position): (u64, u64),
    ) -> Option<u32> {
        if let Some(penalty) = sampling
            .repetition_penalty
            .filter(|penalty| *penalty != 1.0)
        {
            for &token in seen {
                let logit = &mut logits[token as usize];
                *logit = if *logit > 0.0 {
                    *logit / penalty
                } else {
                    *logit * penalty
                };
            }
        }
        let likeliest = argmax(logits)?;
        if sampling.temperature == 0.0 {
            return Some(likeliest);
        }
        if sampling.temperature != 1.0 {
            logits
                .iter_mut()
                .for_each(|logit| *logit /= sampling.temperature);
        }
        self.keep(ops, logits, logits[likeliest as usize], sampling);
        let total: u64 = self.kept.iter().map(|(_, mass)| mass).sum();
        let target = multiply_high(philox(seed, position), total);
        let mut sum = 0;
        self.kept
            .iter()
            .find(|(_, mass)| {
                sum += mass;
                sum > target
            })
            .map(|(token, _)| *token)
    }

    /// Fills `kept` with the tokens that pass the filters, by ascending id.
    fn keep(&mut self, ops: &Ops, logits: &[f32], maximum: f32, sampling: &Sampling) {
        ops.exponentials(logits, maximum, &mut self.exponentials);
        let floor = sampling
            .min_p
            .map_or(1, |share| ((share * ONE) as u64).max(1));
        let masses = self
            .exponentials
            .iter()
            .enumerate()
            .map(|(id, share)| (id as u32, (share * ONE) as u64));
        self.kept.clear();
        self.kept.extend(masses.filter(|(_, mass)| *mass > 0));
        // Logits order tokens more finely than masses, which round.
        let by_rank = |a: &(u32, u64), b: &(u32, u64)| {
            logits[b.0 as usize]
                .total_cmp(&logits[a.0 as usize])
                .then(a.0.cmp(&b.0))
        };
        if let Some(count) = sampling
            .top_k
            .map(|k| k as usize)
            .filter(|k| *k > 0 && *k < self.kept.len())
        {
            self.kept.select_nth_unstable_by(count - 1, by_rank);
            self.kept.truncate(count);
        }
        if let Some(share) = sampling.top_p.filter(|share| *share < 1.0) {
            self.kept.sort_unstable_by(by_rank);
            let total: u64 = self.kept.iter().map(|(_, mass)| mass).sum();
            let wanted = (f64::from(share) * total as f64) as u64;
            let mut sum = 0;
            let count = self.kept.iter().position(|(_, mass)| {
                sum += mass;
                sum >= wanted
            });
            self.kept
                .truncate(count.map_or(self.kept.len(), |count| count + 1));
        }
        self.kept.retain(|(_, mass)| *mass >= floor);
        self.kept.sort_unstable_by_key(|(id, _)| *id);
    }

    /// Log-probabilities of `token` and of the `count` likeliest, under the unchanged `logits`.
    pub fn logprobs(
        &mut self,
        ops: &Ops,
        logits: &[f32],
        token: u32,
        count: usize,
    ) -> TokenLogprobs {
        let maximum = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        ops.exponentials(logits, maximum, &mut self.exponentials);
        let total: u64 = self
            .exponentials
            .iter()
            .map(|share| (share * ONE) as u64)
            .sum();
        let normaliser = (total as f64 / f64::from(ONE)).ln() as f32;
        let logprob = |token: u32| logits[token as usize] - maximum - normaliser;
        let mut ids: Vec<u32> = (0..logits.len() as u32).collect();
        let by_rank = |a: &u32, b: &u32| {
            logits[*b as usize]
                .total_cmp(&logits[*a as usize])
                .then(a.cmp(b))
        };
        if count > 0 && count < ids.len() {
            ids.select_nth_unstable_by(count - 1, by_rank);
        }
        ids.truncate(count);
        ids.sort_unstable_by(by_rank);
        TokenLogprobs {
            chosen: logprob(token),
            top: ids.into_iter().map(|id| (id, logprob(id))).collect(),
        }
    }
}

/// The id of the largest logit, the lowest such id; `None` if all are minus infinity or none is a number.
fn argmax(logits: &[f32]) -> Option<u32> {
    let mut best = (f32::NEG_INFINITY, None);
    for (id, &logit) in logits.iter().enumerate() {
        if logit > best.0 {
            best = (logit, Some(id as u32));
        }
    }
    best.1
}

fn multiply_high(a: u64, b: u64) -> u64 {
    ((u128::from(a) * u128::from(b)) >> 64) as u64
}

/// Philox 4×32-10 (Salmon et al., 2011) at counter `position` under key `seed`; its first two words.
fn philox(seed: u64, position: u64) -> u64 {
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
        key = [
            key[0].wrapping_add(0x9E37_79B9),
            key[1].wrapping_add(0xBB67_AE85),
        ];
    }
    u64::from(counter[0]) << 32 | u64::from(counter[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draw(logits: &[f32], sampling: Sampling, position: u64) -> Option<u32> {
        let ops = Ops::new(1).unwrap();
        Sampler::default().draw(
            &ops,
            &mut logits.to_vec(),
            &[0, 2],
            &sampling,
            (7, position),
        )
    }

    #[test]
    fn philox_gives_the_published_answers() {
        assert_eq!(philox(0, 0), 0x6627_e8d5_e169_c58d);
        assert_ne!(philox(u64::MAX, 0), philox(0, 0));
    }

    #[test]
    fn trap_18_ties_go_to_the_lowest_id() {
        let greedy = Sampling {
            temperature: 0.0,
            ..Sampling::default()
        };
        assert_eq!(draw(&[1.0, 3.0, 3.0, 3.0], greedy, 0), Some(1));
        let two = Sampling {
            top_k: Some(2),
            ..Sampling::default()
        };
        for position in 0..50 {
            assert!(matches!(
                draw(&[1.0, 3.0, 3.0, 3.0], two, position),
                Some(1 | 2)
            ));
        }
    }

    #[test]
    fn nothing_to_draw_is_no_token() {
        assert_eq!(draw(&[f32::NEG_INFINITY; 3], Sampling::default(), 0), None);
        assert_eq!(draw(&[f32::NAN; 3], Sampling::default(), 0), None);
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.0f32, 1.0, 2.0, f32::NEG_INFINITY, -1.0];
        let ops = Ops::new(1).unwrap();
        let mut sampler = Sampler::default();
        let mut counts = [0u32; 5];
        let draws = 40_000;
        for position in 0..draws {
            let key = (11, position);
            let token = sampler
                .draw(&ops, &mut logits.clone(), &[], &Sampling::default(), key)
                .unwrap();
            counts[token as usize] += 1;
        }
        let total: f32 = logits.iter().map(|logit| logit.exp()).sum();
        for (logit, count) in logits.iter().zip(counts) {
            let expected = logit.exp() / total * draws as f32;
            assert!(
                (count as f32 - expected).abs() < 4.0 * expected.sqrt() + 1.0,
                "{count}, not {expected}"
            );
        }
    }

    #[test]
    fn filters_keep_what_transformers_keeps() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/goldens/sampler.json");
        let cases: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let ops = Ops::new(1).unwrap();
        let tolerance = cases["probability_tolerance"].as_f64().unwrap();
        let cases = cases["cases"].as_array().unwrap();
        assert!(cases.len() >= 10);
        for case in cases {
            let number = |name: &str, off: f64| {
                case[name]
                    .as_f64()
                    .filter(|value| *value != off)
                    .map(|value| value as f32)
            };
            let sampling = Sampling {
                temperature: number("temperature", 1.0).unwrap_or(1.0),
                top_k: number("top_k", 0.0).map(|k| k as u32),
                top_p: number("top_p", 1.0),
                min_p: number("min_p", 0.0),
                repetition_penalty: number("repetition_penalty", 1.0),
            };
            let floats =
                |name: &str| -> Vec<f32> { serde_json::from_value(case[name].clone()).unwrap() };
            let ids =
                |name: &str| -> Vec<u32> { serde_json::from_value(case[name].clone()).unwrap() };
            let mut logits = floats("logits");
            let mut previous = ids("previous");
            previous.sort_unstable();
            previous.dedup();
            let mut sampler = Sampler::default();
            sampler
                .draw(&ops, &mut logits, &previous, &sampling, (0, 0))
                .unwrap();
            let kept: Vec<u32> = sampler.kept.iter().map(|(id, _)| *id).collect();
            assert_eq!(kept, ids("kept"), "{}", case["name"]);
            let total: u64 = sampler.kept.iter().map(|(_, mass)| mass).sum();
            for ((_, mass), probability) in sampler.kept.iter().zip(floats("probabilities")) {
                let ours = *mass as f64 / total as f64;
                assert!(
                    (ours - f64::from(probability)).abs() < tolerance,
                    "{}: {ours}",
                    case["name"]
                );
            }
        }
    }

    #[test]
    fn logprobs_sum_to_one() {
        let ops = Ops::new(1).unwrap();
        let logits: Vec<f32> = (0..50).map(|id| (id as f32 * 0.7).sin() * 4.0).collect();
        let all = Sampler::default().logprobs(&ops, &logits, 3, 50);
        let total: f32 = all.top.iter().map(|(_, logprob)| logprob.exp()).sum();
        assert!((total - 1.0).abs() < 1e-5);
        assert!(all.top.windows(2).all(|pair| pair[0].1 >= pair[1].1));
        assert_eq!(
            all.top.iter().find(|(id, _)| *id == 3).unwrap().1,
            all.chosen
        );
    }
}
