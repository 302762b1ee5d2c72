//! From a row of logits to a token: penalties, temperature, top-k, top-p, min-p and a draw, whose masses are integers.

use std::cell::Cell;

use super::Backend;
use super::sampling::{
    Drawn, ONE, Sampling, SamplingRequest, TokenLogprobs, are_sound, exponentials, forbid,
    logprobs, multiply_high,
};

/// A draw for each row of logits that has a request, a row a task; each depends on its own request alone.
pub fn draw_rows(
    ops: &impl Backend,
    rows: Vec<&[f32]>,
    requests: &[Option<SamplingRequest>],
) -> Vec<Drawn> {
    ops.map_each(rows.into_iter().zip(requests).collect(), |(logits, request)| {
        let Some(request) = request else {
            return Drawn::default();
        };
        let mut sampler = SPARE.take();
        let drawn = sampler.draw(logits, request);
        SPARE.set(sampler);
        drawn
    })
}

thread_local! {
    static SPARE: Cell<Sampler> = Cell::default();
}

/// Buffers of one draw, kept between draws.
#[derive(Debug, Default)]
struct Sampler {
    row: Vec<f32>,
    exponentials: Vec<f32>,
    kept: Vec<(u32, u64)>,
}

impl Sampler {
    fn draw(&mut self, logits: &[f32], request: &SamplingRequest) -> Drawn {
        if !are_sound(logits) {
            return Drawn { is_broken: true, ..Drawn::default() };
        }
        let mut row = std::mem::take(&mut self.row);
        row.clear();
        row.extend_from_slice(logits);
        forbid(&request.allowed, &mut row);
        let token = self.choose(&mut row, request);
        self.row = row;
        let logprobs =
            token.zip(request.logprobs).map(|(token, count)| logprobs(logits, token, count));
        Drawn { token, logprobs, is_broken: false }
    }

    /// The token; `None` if every logit is minus infinity.
    fn choose(&mut self, logits: &mut [f32], request: &SamplingRequest) -> Option<u32> {
        let sampling = &request.sampling;
        if let Some(penalty) = sampling.penalty() {
            for &token in &request.seen {
                let logit = &mut logits[token as usize];
                *logit = if *logit > 0.0 { *logit / penalty } else { *logit * penalty };
            }
        }
        for &(token, amount) in &request.added {
            logits[token as usize] += amount;
        }
        let likeliest = argmax(logits)?;
        if sampling.temperature == 0.0 {
            return Some(likeliest);
        }
        if sampling.temperature != 1.0 {
            logits.iter_mut().for_each(|logit| *logit /= sampling.temperature);
        }
        self.keep(logits, logits[likeliest as usize], sampling);
        let total: u64 = self.kept.iter().map(|(_, mass)| mass).sum();
        let target = multiply_high(request.random, total);
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
    fn keep(&mut self, logits: &[f32], maximum: f32, sampling: &Sampling) {
        exponentials(logits, maximum, &mut self.exponentials);
        let floor = sampling.min_p.map_or(1, |share| ((share * ONE) as u64).max(1));
        let masses = self
            .exponentials
            .iter()
            .enumerate()
            .map(|(id, share)| (id as u32, (share * ONE) as u64));
        self.kept.clear();
        self.kept.extend(masses.filter(|(_, mass)| *mass > 0));
        // Logits order tokens more finely than masses, which round.
        let by_rank = |a: &(u32, u64), b: &(u32, u64)| {
            logits[b.0 as usize].total_cmp(&logits[a.0 as usize]).then(a.0.cmp(&b.0))
        };
        if let Some(count) =
            sampling.top_k.map(|k| k as usize).filter(|k| *k > 0 && *k < self.kept.len())
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
            self.kept.truncate(count.map_or(self.kept.len(), |count| count + 1));
        }
        self.kept.retain(|(_, mass)| *mass >= floor);
        self.kept.sort_unstable_by_key(|(id, _)| *id);
    }
}

/// Of each row, `width` logits, those of its token and of so many of the likeliest.
pub fn logprobs_of_rows(
    ops: &impl Backend,
    logits: &[f32],
    width: usize,
    wanted: &[(u32, usize)],
) -> Vec<TokenLogprobs> {
    let rows = logits.chunks(width).zip(wanted);
    ops.map_each(rows.collect(), |(logits, (token, count))| logprobs(logits, *token, *count))
}

/// The token of one row that is not changed.
pub fn draw_token(logits: &[f32], request: &SamplingRequest) -> Option<u32> {
    let mut logits = logits.to_vec();
    forbid(&request.allowed, &mut logits);
    Sampler::default().choose(&mut logits, request)
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampling::philox;

    fn order(sampling: Sampling, seen: &[u32], random: u64) -> SamplingRequest {
        SamplingRequest {
            sampling,
            allowed: vec![u32::MAX; 8192].into(),
            seen: seen.to_vec(),
            added: Vec::new(),
            random,
            logprobs: None,
        }
    }

    fn draw(logits: &[f32], sampling: Sampling, position: u64) -> Option<u32> {
        let order = order(sampling, &[0, 2], philox(7, position));
        Sampler::default().draw(logits, &order).token
    }

    #[test]
    fn trap_18_ties_go_to_the_lowest_id() {
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        assert_eq!(draw(&[1.0, 3.0, 3.0, 3.0], greedy, 0), Some(1));
        let two = Sampling { top_k: Some(2), ..Sampling::default() };
        for position in 0..50 {
            assert!(matches!(draw(&[1.0, 3.0, 3.0, 3.0], two, position), Some(1 | 2)));
        }
    }

    #[test]
    fn what_is_added_counts_in_the_draw_and_allows_nothing_that_is_forbidden() {
        let greedy = Sampling { temperature: 0.0, ..Sampling::default() };
        let logits = [1.0, 3.0, 2.0, f32::NEG_INFINITY];
        for (added, token) in [
            (vec![(1, -1.5)], 2),
            (vec![(0, 2.5)], 0),
            (vec![(1, -1.0)], 1),
            (vec![(3, 100.0)], 1),
            (vec![(0, 1.0), (1, -2.0), (2, -1.0)], 0),
        ] {
            let order = SamplingRequest { added, ..order(greedy, &[], 0) };
            assert_eq!(draw_token(&logits, &order), Some(token), "{:?}", order.added);
        }
    }

    #[test]
    fn nothing_to_draw_is_no_token() {
        let none = SamplingRequest {
            allowed: vec![0; 1].into(),
            ..order(Sampling::default(), &[], philox(7, 0))
        };
        let drawn = Sampler::default().draw(&[1.0; 3], &none);
        assert_eq!((drawn.token, drawn.is_broken), (None, false));
    }

    #[test]
    fn a_row_that_is_no_row_of_numbers_is_broken_though_others_of_it_could_be_drawn() {
        let order = order(Sampling::default(), &[], philox(7, 0));
        for row in [[f32::NAN; 3], [1.0, f32::NAN, 2.0], [f32::INFINITY, 0.0, 1.0]] {
            let drawn = Sampler::default().draw(&row, &order);
            assert_eq!((drawn.token, drawn.is_broken), (None, true), "{row:?}");
        }
    }

    #[test]
    fn draws_follow_the_distribution() {
        let logits = [0.0f32, 1.0, 2.0, f32::NEG_INFINITY, -1.0];
        let mut sampler = Sampler::default();
        let mut counts = [0u32; 5];
        let draws = 40_000;
        for position in 0..draws {
            let order = order(Sampling::default(), &[], philox(11, position));
            let token = sampler.draw(&logits, &order).token.unwrap();
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
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/goldens/sampler.json");
        let cases: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let tolerance = cases["probability_tolerance"].as_f64().unwrap();
        let cases = cases["cases"].as_array().unwrap();
        assert!(cases.len() >= 10);
        for case in cases {
            let number = |name: &str, off: f64| {
                case[name].as_f64().filter(|value| *value != off).map(|value| value as f32)
            };
            let sampling = Sampling {
                temperature: number("temperature", 1.0).unwrap_or(1.0),
                top_k: number("top_k", 0.0).map(|k| k as u32),
                top_p: number("top_p", 1.0),
                min_p: number("min_p", 0.0),
                repetition_penalty: number("repetition_penalty", 1.0),
                ..Sampling::default()
            };
            let floats =
                |name: &str| -> Vec<f32> { serde_json::from_value(case[name].clone()).unwrap() };
            let ids =
                |name: &str| -> Vec<u32> { serde_json::from_value(case[name].clone()).unwrap() };
            let logits = floats("logits");
            let mut previous = ids("previous");
            previous.sort_unstable();
            previous.dedup();
            let mut sampler = Sampler::default();
            let order = order(sampling, &previous, philox(0, 0));
            sampler.draw(&logits, &order).token.unwrap();
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
}
