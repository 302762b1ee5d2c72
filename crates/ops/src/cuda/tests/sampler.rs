//! Draws have to be the CPU's, token for token: a seed's answer must not depend on where it was drawn.

use std::sync::Arc;

use super::*;
use crate::sampler::logprobs_of_rows;
use crate::sampling::{Drawn, Sampling, SamplingRequest, TokenLogprobs};

/// Rows of a step.
const ROWS: usize = 64;

/// A few masks that requests share: everything, half, three tokens, nothing, and one that ends early.
fn masks(vocabulary: usize) -> [Arc<[u32]>; 5] {
    let words = vocabulary.div_ceil(32);
    let half = (0..words as u64).map(|word| philox(1, word) as u32);
    let mut three = vec![0; words];
    for token in [0, vocabulary / 2, vocabulary - 1] {
        three[token / 32] |= 1 << (token % 32);
    }
    [
        vec![u32::MAX; words].into(),
        half.collect(),
        three.into(),
        vec![0; words].into(),
        vec![u32::MAX; words / 2].into(),
    ]
}

/// Smooth, full of ties, all alike, or partly minus infinity.
pub fn logits(vocabulary: usize, row: u64) -> Vec<f32> {
    let mut logits = noise(vocabulary, 1000 + row);
    logits.iter_mut().for_each(|logit| *logit *= 4.0);
    match row % 5 {
        0 | 1 => {}
        2 => logits.iter_mut().for_each(|logit| *logit = logit.round() / 2.0),
        3 => logits.fill(-1.5),
        _ => logits.iter_mut().step_by(3).for_each(|logit| *logit = f32::NEG_INFINITY),
    }
    logits
}

/// Filters of every kind, alone and together; every ninth row draws nothing.
pub fn requests(vocabulary: usize, rows: std::ops::Range<u64>) -> Vec<Option<SamplingRequest>> {
    let masks = masks(vocabulary);
    let order = |row: u64| {
        let choose = |count, what: u64| pick(count, 2, row * 16 + what);
        let seen =
            (0..vocabulary as u32).filter(|token| philox(row, u64::from(*token)).is_multiple_of(5));
        let sampling = Sampling {
            temperature: [0.0, 0.7, 1.0, 2.0][choose(4, 0)],
            top_k: [None, None, Some(1), Some(7), Some(40), Some(5000)][choose(6, 1)],
            // Half of an even number of tokens that are all alike is met exactly.
            top_p: [None, None, Some(0.95), Some(0.5), Some(0.0)][choose(5, 2)],
            min_p: [None, None, Some(0.05), Some(0.6)][choose(4, 3)],
            repetition_penalty: [None, Some(1.0), Some(1.3), Some(0.8)][choose(4, 4)],
            ..Sampling::default()
        };
        SamplingRequest {
            sampling,
            // Most rows are masked by a grammar or not at all.
            allowed: masks[[0, 0, 0, 1, 1, 1, 2, 3, 4][choose(9, 5)]].clone(),
            seen: seen.collect(),
            added: Vec::new(),
            random: philox(3, row),
            logprobs: row.is_multiple_of(8).then(|| [0, 5, 20][choose(3, 6)]),
        }
    };
    rows.map(|row| (row % 9 != 8).then(|| order(row))).collect()
}

fn check(vocabulary: usize, rows: u64) {
    let gpu = gpu();
    let cpu = Cpu::new(1).unwrap();
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(ROWS, ROWS, 32)).unwrap();
    let mut tokens = 0;
    for first in (0..rows).step_by(ROWS) {
        // The last step has fewer.
        let requests = requests(vocabulary, first..rows.min(first + ROWS as u64));
        let numbers: Vec<f32> =
            (0..requests.len() as u64).flat_map(|row| logits(vocabulary, first + row)).collect();
        let mut held = gpu.hold(&numbers, vocabulary, Numbers::Wide);
        let found = gpu.draw(&mut held, &requests, &mut stage).unwrap();
        let mut held = cpu.hold(&numbers, vocabulary, Numbers::Wide);
        let expected = cpu.draw(&mut held, &requests, &mut ()).unwrap();
        assert_eq!(found.len(), requests.len());
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let order = &requests[row];
            assert_eq!(found.token, expected.token, "row {row} of {first}: {order:?}");
            tokens += usize::from(found.token.is_some());
            let Some(order) = order else {
                assert_eq!(*found, Drawn::default());
                continue;
            };
            let wanted = order.logprobs.is_some() && found.token.is_some();
            assert_eq!(found.logprobs.is_some(), wanted, "row {row} of {first}");
            let [of_gpu, of_cpu] = [found, expected].map(|drawn| drawn.logprobs.iter().map(told));
            assert!(of_gpu.eq(of_cpu), "row {row} of {first}: {:?}", order.logprobs);
            let forbids_all = order.allowed.iter().all(|word| *word == 0);
            assert!(!forbids_all || found.token.is_none());
        }
    }
    // The others have no order, or may draw nothing.
    assert!(3 * tokens > 2 * rows as usize);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn tokens_are_the_cpus() {
    check(300, 3990);
}

/// Few rows are drawn by larger clusters than many; with no filter and with all of them.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn tokens_do_not_depend_on_the_rows_beside_them() {
    let gpu = gpu();
    let vocabulary = 3000;
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(ROWS, ROWS, 32)).unwrap();
    let mut draw = |rows: std::ops::Range<u64>| {
        let requests = requests(vocabulary, rows.clone());
        let numbers: Vec<f32> = rows.flat_map(|row| logits(vocabulary, row)).collect();
        let mut held = gpu.hold(&numbers, vocabulary, Numbers::Wide);
        gpu.draw(&mut held, &requests, &mut stage).unwrap()
    };
    // On an H200: clusters of four, of eight.
    let together = draw(0..ROWS as u64);
    for row in 0..ROWS as u64 {
        assert_eq!(draw(row..row + 1), together[row as usize..=row as usize], "row {row}");
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn tokens_of_a_large_vocabulary_are_the_cpus() {
    check(40_000, 250);
}

/// Every bit of them.
fn told(logprobs: &TokenLogprobs) -> (u32, u32, Vec<(u32, u32)>) {
    let TokenLogprobs { chosen, rank, top } = logprobs;
    let top = top.iter().map(|(id, logprob)| (*id, logprob.to_bits()));
    (chosen.to_bits(), *rank, top.collect())
}

/// Rows before those of known tokens.
const HEADS: usize = 3;

/// The scores of rows, and what the host makes of the same logits; `rows` with other logits before them.
pub fn scores(
    gpu: &Cuda,
    vocabulary: usize,
    rows: std::ops::Range<u64>,
    most: usize,
) -> [Vec<TokenLogprobs>; 2] {
    let wanted = rows.clone().map(|row| (pick(vocabulary, 5, row) as u32, pick(most + 1, 6, row)));
    let wanted: Vec<(u32, usize)> = wanted.collect();
    let mut numbers: Vec<f32> = (0..HEADS).flat_map(|_| logits(vocabulary, 77)).collect();
    for row in rows {
        let mut row_numbers = logits(vocabulary, row);
        // What no model should give is told alike too.
        match row % 16 {
            3 => row_numbers[5] = f32::NAN,
            7 => row_numbers[6] = f32::INFINITY,
            11 => row_numbers.fill(f32::NEG_INFINITY),
            // The likeliest lie side by side, or all in one thread's share.
            13 => row_numbers[..40].fill(9.0),
            15 => row_numbers.iter_mut().step_by(512).for_each(|logit| *logit += 20.0),
            _ => {}
        }
        numbers.extend(row_numbers);
    }
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(ROWS, ROWS, 32)).unwrap();
    let held = gpu.hold(&numbers, vocabulary, Numbers::Wide);
    let found = gpu.score(&held, HEADS, &wanted, &mut stage).unwrap();
    assert_eq!(bits(&gpu.read(&held, HEADS + wanted.len()).unwrap()), bits(&numbers));
    let expected = logprobs_of_rows(gpu, &numbers[HEADS * vocabulary..], vocabulary, &wanted);
    [found, expected]
}

/// Few rows are scored by larger clusters than many, and many likeliest tokens otherwise than few.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn scores_are_the_hosts_and_do_not_depend_on_the_rows_beside_them() {
    let gpu = gpu();
    let check = |vocabulary: usize, rows: u64, most: usize| {
        let [found, expected] = scores(&gpu, vocabulary, 0..rows, most);
        assert_eq!(found.len(), rows as usize);
        for (row, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let what = format!("row {row} of {rows}, {vocabulary} tokens, {most}");
            assert_eq!(told(found), told(expected), "{what}");
        }
    };
    check(300, 40, 20);
    check(3000, 20, 5);
    for rows in [0, 1, 20, 40, 80, 150] {
        check(3000, rows, 8);
    }
    check(3000, 20, 400);
    check(40_000, 20, 20);
    check(40_000, 3, 8);
}
