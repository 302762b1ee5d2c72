//! candle's backend on its CPU device, beside the CPU backend: models, engines, draws, and what goes wrong.

mod transformers;

use std::ops::Range;
use std::path::PathBuf;
use std::sync::Arc;

use candle_core::{Device, Tensor};
use tempfile::TempDir;
use wardround::diagnosis::Diagnosis;
use wardround::engine::{Engine, EngineOptions, Request, Sampling};
use wardround::model::{
    Cache, Config, Decoder, Family, ModelError, Probe, Scratch, WantedPrecision, compute_logits,
    precision_of,
};
use wardround::ops::candle::{Buffer, Place};
use wardround::ops::checkpoint::RawTensor;
use wardround::ops::sampling::{Drawn, SamplingRequest, philox};
use wardround::ops::{
    Backend, Candle, Cpu, Machine, OpsError, Precision, Quantisation, Rows, StateRows, StepLimits,
    StoredType, cpu,
};
use wardround::random::mix;
use wardround::synth::{Recipe, Shape, write_checkpoint};
use wardround::tokenizer::Tokenizer;

use crate::common::{self, GREEDY, golden, weight_files};

const FAMILIES: [Family; 7] = Family::ALL;

fn limits(rows: usize, positions: usize) -> StepLimits {
    StepLimits { rows, logit_rows: rows, positions }
}

fn candle() -> Candle {
    Candle::open(Place::Cpu, 2).unwrap()
}

/// A tiny checkpoint, with windows cut to fewer positions than the sequences below have.
struct Model {
    directory: TempDir,
    config: Config,
}

impl Model {
    fn new(family: Family) -> Model {
        let directory = tempfile::tempdir().unwrap();
        let recipe = Recipe { family, shape: Shape::Tiny, seed: 3, tokenizer: None };
        write_checkpoint(&recipe, directory.path()).unwrap();
        let mut config = Config::read(&directory.path().join("config.json")).unwrap();
        config.windows.iter_mut().flatten().for_each(|window| *window = 40);
        Model { directory, config }
    }

    fn files(&self) -> [PathBuf; 1] {
        [self.directory.path().join("model.safetensors")]
    }

    fn decoder<B: Backend>(&self, ops: &B, stored: StoredType) -> Decoder<B> {
        let config = self.config.clone();
        Decoder::load(ops, config, &self.files(), stored.into(), 256).unwrap()
    }

    /// The logits of each step's rows, of every step but the first.
    fn logits<B: Backend>(&self, ops: &B, stored: StoredType) -> Vec<Vec<f32>> {
        let decoder = self.decoder(ops, stored);
        let mut cache = Cache::new(ops, &self.config, StoredType::F32.into(), 12, 3).unwrap();
        let mut scratch = Scratch::new(ops, &self.config, limits(160, 192)).unwrap();
        let mut compute = |shares: &[Share], gives_logits: bool| {
            let rows = || {
                let of_share = |(sequence, range): &Share| {
                    let sequence = *sequence as u32;
                    range.clone().map(move |position| (sequence, position))
                };
                shares.iter().flat_map(of_share)
            };
            let tokens: Vec<u32> = rows().map(|(of, at)| token(of, at)).collect();
            let logit_rows = match gives_logits {
                true => (0..tokens.len()).rev().collect(),
                false => Vec::new(),
            };
            let rows = Rows {
                tokens: &tokens,
                positions: &rows().map(|(_, position)| position).collect::<Vec<_>>(),
                sequences: &rows().map(|(sequence, _)| sequence).collect::<Vec<_>>(),
                segments: &[],
                tables: &TABLES,
                states: &[0, 1, 2].map(|slot| StateRows { slot, drafted: 0 }),
            };
            ops.run(|| decoder.forward(ops, rows, &logit_rows, &mut cache, &mut scratch));
            ops.read(scratch.logits().0, logit_rows.len()).unwrap()
        };
        let first = compute(STEPS[0], false);
        assert!(first.is_empty());
        let rest = STEPS[1..].iter();
        rest.map(|shares| compute(shares, true)).collect()
    }
}

/// A sequence and its next positions.
type Share = (usize, Range<u32>);

/// Three sequences: one of more rows a step than attend at once, one that begins with two of its pages, a short one.
const TABLES: [&[u32]; 3] = [&[7, 2, 9, 4, 0, 11], &[7, 2, 3, 10], &[1, 6]];

/// Sequences begin, go on and generate beside one another.
const STEPS: [&[Share]; 5] = [
    &[(0, 0..10)],
    &[(0, 10..150)],
    &[(1, 64..100), (0, 150..151), (2, 0..1)],
    &[(2, 1..40), (0, 151..163), (1, 100..101)],
    &[(0, 163..164), (1, 101..102), (2, 40..41)],
];

/// The second sequence begins as the first does.
fn token(sequence: u32, position: u32) -> u32 {
    let sequence = if position < 64 && sequence == 1 { 0 } else { sequence };
    300 + mix(u64::from(sequence) << 32 | u64::from(position)) as u32 % 500
}

/// The greatest difference, relative to the largest number.
fn distance(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
    let differences = found.iter().zip(expected).map(|(a, b)| (a - b).abs());
    // A maximum would pass over what is no number.
    differences.fold(0.0, |most, each| if each <= most { most } else { each }) / largest
}

#[test]
fn logits_are_those_of_the_cpu_up_to_rounding() {
    let cpu = common::exact(2);
    for family in FAMILIES {
        let model = Model::new(family);
        // Products with bf16 weights are rounded to bf16, a dozen of them in a row; states carry that on from row to row.
        let rounded = if family == Family::Qwen35 { 0.08 } else { 0.03 };
        for (stored, tolerance) in [(StoredType::F32, 1e-5), (StoredType::Bf16, rounded)] {
            let expected = model.logits(&cpu, stored);
            let found = model.logits(&candle(), stored);
            for (step, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let distance = distance(found, expected);
                let case = format!("{family:?} {stored}, step {step}");
                assert!(distance < tolerance, "{case}: {distance}");
            }
        }
    }
}

#[test]
fn golden_checkpoints_give_the_logits_and_greedy_tokens_of_transformers() {
    let device = wardround::ops::Device::Candle(candle());
    // Gemma's scale of embeddings is rounded as its weights are stored, which here are widened.
    let in_bf16 = ["gemma3-bf16", "gemma3-default-heads", "gemma4"];
    let all = golden::cases().into_iter().filter(|case| !in_bf16.contains(&&*case.name));
    for case in all {
        let config = Config::read(&case.directory.join("config.json")).unwrap();
        let files = weight_files(&case.directory);
        let whole = [&case.prompt[..], &case.greedy[..]].concat();
        let begun = case.prompt.clone();
        let last = begun.len() - 1;
        let mut probes = [Probe::new(whole.clone(), 0, 0), Probe::new(begun, last, 64)];
        compute_logits(&device, &config, &files, StoredType::F32.into(), 33, &mut probes).unwrap();
        case.check(&probes[0].logits);
        assert_eq!(probes[1].tokens, whole, "{}", case.name);
    }
}

#[test]
fn an_engine_says_what_the_cpus_does() {
    let options = EngineOptions {
        pages: 24,
        max_batch: 4,
        prefill_rows: 48,
        context: 256,
        draft: 2,
        known_logit_rows: 8,
        slots: 6,
        pages_at_start: false,
    };
    for family in FAMILIES {
        let model = Model::new(family);
        let path = model.directory.path().join("tokenizer.json");
        let tokenizer = Arc::new(Tokenizer::load(&path).unwrap());
        let requests: Vec<Request> = (0..5)
            .map(|index| Request {
                // All begin alike.
                tokens: (0..50 + 13 * index)
                    .map(|position| token(position / 40 * index, position))
                    .collect(),
                sampling: match index % 2 {
                    0 => GREEDY,
                    _ => Sampling::default(),
                },
                seed: u64::from(index),
                max_tokens: 8,
                ..Request::default()
            })
            .collect();
        let expected = complete(&model, common::exact(2), &tokenizer, options, &requests);
        let found = complete(&model, candle(), &tokenizer, options, &requests);
        assert_eq!(found, expected, "{family:?}");
    }
}

fn complete<B: Backend>(
    model: &Model,
    ops: B,
    tokenizer: &Arc<Tokenizer>,
    options: EngineOptions,
    requests: &[Request],
) -> Vec<Vec<u32>> {
    let eos = model.config.eos_ids.clone();
    let decoder = model.decoder(&ops, StoredType::F32);
    let engine = Engine::start("test", decoder, tokenizer.clone(), &eos, ops, options).unwrap();
    let submit = |request: &Request| engine.submit(request.clone()).unwrap();
    let tickets: Vec<_> = requests.iter().map(submit).collect();
    let wait = |ticket: wardround::engine::Ticket| ticket.wait().unwrap().tokens;
    tickets.into_iter().map(wait).collect()
}

#[test]
fn draws_from_the_same_logits_are_the_cpus() {
    let (candle, cpu) = (candle(), Cpu::new(2).unwrap());
    let (rows, width) = (5, 200);
    let numbers: Vec<f32> =
        (0..rows * width).map(|index| (mix(index as u64) % 4096) as f32 / 512.0 - 4.0).collect();
    let order = |sampling: Sampling, seed: u64| SamplingRequest {
        sampling,
        allowed: vec![0x7fff_ff3f; 6].into(),
        seen: vec![3, 70, 71],
        added: Vec::new(),
        random: philox(seed, 9),
        logprobs: seed.is_multiple_of(2).then_some(3),
    };
    let filtered = Sampling {
        temperature: 0.7,
        top_k: Some(40),
        top_p: Some(0.9),
        min_p: Some(0.01),
        repetition_penalty: Some(1.3),
        ..Sampling::default()
    };
    for seed in 0..20 {
        // The last row stays.
        let requests = [
            Some(order(GREEDY, seed)),
            None,
            Some(order(Sampling::default(), seed)),
            Some(order(filtered, seed)),
        ];
        let tensor = Tensor::from_slice(&numbers, (rows, width), &Device::Cpu);
        let mut logits = Buffer(tensor.map_err(|error| error.to_string()));
        let found = candle.draw(&mut logits, &requests, &mut ()).unwrap();
        let mut logits = cpu::Buffer::default();
        logits.reshape(rows, width);
        for (to, from) in logits.rows_mut().zip(numbers.chunks(width)) {
            to.copy_from_slice(from);
        }
        let expected = cpu.draw(&mut logits, &requests, &mut ()).unwrap();
        assert_eq!(found, expected);
        assert_eq!(found[1], Drawn::default());
        assert!(found[0].token.is_some() && found[3].token.is_some());
    }
}

#[test]
fn what_went_wrong_is_told_by_the_next_draw_and_then_over() {
    let (candle, model) = (candle(), Model::new(Family::Qwen3));
    let decoder = model.decoder(&candle, StoredType::Bf16);
    let mut cache = Cache::new(&candle, &model.config, StoredType::F32.into(), 1, 1).unwrap();
    let mut scratch = Scratch::new(&candle, &model.config, limits(1, 32)).unwrap();
    let mut draw = |token: u32, logit_rows: &[usize]| {
        let rows = Rows {
            tokens: &[token],
            positions: &[0],
            sequences: &[0],
            segments: &[],
            tables: &[&[0]],
            states: &[],
        };
        decoder.forward(&candle, rows, logit_rows, &mut cache, &mut scratch);
        let (logits, stage) = scratch.logits();
        candle.draw(logits, &[], stage)
    };
    for logit_rows in [&[0][..], &[]] {
        let error = draw(u32::MAX - 1, logit_rows).unwrap_err();
        assert!(
            matches!(&error, OpsError::Device { device, .. } if device == "candle cpu"),
            "{error}"
        );
        assert_eq!(draw(301, logit_rows), Ok(Vec::new()));
    }
}

#[test]
fn blocks_of_weights_are_refused_by_their_flag() {
    let model = Model::new(Family::Llama);
    let wanted = WantedPrecision { quantisation: Quantisation::Q4K, ..WantedPrecision::default() };
    let error = precision_of(&model.config, &model.files(), wanted, Machine::Candle).unwrap_err();
    let ModelError::Ops(error) = error else {
        panic!("{error}");
    };
    assert_eq!(error.to_string(), "candle cannot keep weights as --quant q4_k does");
    assert!(error.hint().unwrap().contains("--quant at none"));
    let precision = Precision { quantisation: Quantisation::Q4K, ..StoredType::F32.into() };
    let weights = RawTensor::from_f32_bytes(&[0; 4 * 256]);
    assert_eq!(candle().pack(&[weights], 256, precision).unwrap_err(), error);
}
