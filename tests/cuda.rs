//! The CUDA backend's kernels and host code over whole tiny models, against the CPU and against themselves: on the
//! emulator (`cargo test --features cuda-emulated --test cuda`), or on a GPU (`--features cuda`).
#![cfg(any(feature = "cuda", feature = "cuda-emulated"))]
#![allow(clippy::unwrap_used)]

mod common;

use common::{OPTIONS, load_on, logits_on, tokens};
use wardround::engine::{Completion, EngineOptions, Request, Sampling, Ticket};
use wardround::model::{Family, WantedPrecision, WantedType};
use wardround::ops::{Cpu, Cuda, Quantisation, StoredType};

const FAMILIES: [Family; 3] = [Family::Gemma3, Family::Llama, Family::Qwen3];

/// Every way to keep weights on a GPU.
const KEPT: [Quantisation; 3] = [Quantisation::None, Quantisation::Q8_0, Quantisation::Q4K];

/// How far logits may lie from the f32 arithmetic of the CPU over the same weights, relative to the largest: each of a
/// tiny model's dozen roundings to bf16 in a row moves a number by up to 2⁻⁸ of itself.
const TOLERANCE: f32 = 0.03;

/// The GPU of this build, or the emulated one.
fn gpu() -> Cuda {
    Cuda::open(0).unwrap()
}

fn distance(a: &[f32], b: &[f32]) -> f32 {
    let largest = b.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let differences = a.iter().zip(b).map(|(a, b)| (a - b).abs());
    differences.fold(0.0, f32::max) / largest
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn logits_are_those_of_the_cpu_up_to_rounding() {
    let gpu = gpu();
    let cpu = Cpu::new(2).unwrap();
    let tokens = tokens(3, 90);
    for family in FAMILIES {
        let directory = common::synthetic(family);
        let wide = WantedPrecision {
            dtype: WantedType::Exactly(StoredType::F32),
            ..WantedPrecision::default()
        };
        let reference = load_on(&cpu, &directory, wide);
        let expected = logits_on(&cpu, &reference, &tokens, 90);
        let decoder = load_on(&gpu, &directory, WantedPrecision::default());
        let found = logits_on(&gpu, &decoder, &tokens, 90);
        for (position, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let distance = distance(found, expected);
            assert!(distance < TOLERANCE, "{family:?}, position {position}: {distance}");
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn blocks_of_weights_are_the_cpus() {
    let gpu = gpu();
    let cpu = Cpu::new(2).unwrap();
    let tokens = tokens(4, 40);
    for quantisation in [Quantisation::Q8_0, Quantisation::Q4K] {
        let directory = common::synthetic(Family::Qwen3);
        let wanted = WantedPrecision { quantisation, ..WantedPrecision::default() };
        let reference = load_on(&cpu, &directory, wanted);
        let expected = logits_on(&cpu, &reference, &tokens, 40);
        let decoder = load_on(&gpu, &directory, wanted);
        let found = logits_on(&gpu, &decoder, &tokens, 40);
        for (found, expected) in found.iter().zip(&expected) {
            // The CPU rounds activations to bytes.
            assert!(distance(found, expected) < 2.0 * TOLERANCE, "{quantisation}");
        }
    }
}

/// Steps of up to 64 rows take the small matmuls and attend chunk by chunk, longer ones the large matmuls and blocks.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn bits_do_not_depend_on_the_step() {
    let gpu = gpu();
    let tokens = tokens(5, 300);
    for family in FAMILIES {
        let directory = common::synthetic(family);
        for quantisation in KEPT {
            let decoder = load_on(
                &gpu,
                &directory,
                WantedPrecision { quantisation, ..WantedPrecision::default() },
            );
            let whole = logits_on(&gpu, &decoder, &tokens, 300);
            for step in [1, 7, 33, 100] {
                let parts = logits_on(&gpu, &decoder, &tokens, step);
                assert!(parts == whole, "{family:?} {quantisation}, steps of {step}");
            }
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn completions_do_not_depend_on_their_neighbours() {
    let gpu = gpu();
    let sampling = Sampling {
        temperature: 0.8,
        top_k: Some(40),
        top_p: Some(0.95),
        repetition_penalty: Some(1.1),
        ..Sampling::default()
    };
    let requests: Vec<Request> = (0..9)
        .map(|index| Request {
            tokens: tokens(index % 3, 20 + 23 * index as usize),
            sampling: if index % 2 == 0 { sampling } else { common::GREEDY },
            seed: index,
            max_tokens: 12,
            logprobs: (index == 4).then_some(3),
            prompt_logprobs: (index == 5).then_some(2),
            logit_bias: if index == 6 { vec![(301, 2.0), (302, -1.5)] } else { Vec::new() },
            ..Request::default()
        })
        .collect();
    let directory = common::synthetic(Family::Gemma3);
    let engine = |options: EngineOptions| {
        let decoder = load_on(&gpu, &directory, WantedPrecision::default());
        common::start(decoder, common::tokenizer(&directory), options, &gpu)
    };
    let strip = |completion: Completion| {
        let Completion { tokens, text, logprobs, prompt_logprobs, .. } = completion;
        (tokens, text, logprobs, prompt_logprobs)
    };
    let alone: Vec<_> = requests
        .iter()
        .map(|request| strip(common::complete(&engine(OPTIONS), request.clone())))
        .collect();
    // The second has pages for two or three at once.
    for (pages, max_batch, prefill_rows) in [(512, 9, 256), (16, 5, 40)] {
        let together = engine(EngineOptions {
            pages,
            max_batch,
            prefill_rows,
            context: 400,
            draft: 3,
            ..OPTIONS
        });
        let tickets: Vec<Ticket> =
            requests.iter().map(|request| together.submit(request.clone()).unwrap()).collect();
        for (ticket, alone) in tickets.into_iter().zip(&alone) {
            assert!(strip(ticket.wait().unwrap()) == *alone);
        }
    }
}
