//! The CPU's kernels one by one, in one layer of Qwen3-0.6B's shape: `cargo bench --bench kernels [-- FILTER]`.
#![allow(missing_docs, clippy::unwrap_used)]

use std::hint::black_box;

use criterion::{BatchSize, BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wardround::ops::checkpoint::RawTensor;
use wardround::ops::cpu::{Buffer, KvPages};
use wardround::ops::sampling::are_sound;
use wardround::ops::vectors::{VectorRows, append};
use wardround::ops::{
    AttentionShape, Backend, Cpu, DeltaShape, DeltaWeights, HostStep, LayerPages, LayerStates,
    PAGE, PageShape, Precision, Quantisation, Rows, StateRows, StateShape, StoredType,
};

const HIDDEN: usize = 1024;
const INNER: usize = 3072;
const HEADS: usize = 16;
const SHAPE: PageShape = PageShape { layers: 1, kv_heads: 8, head_dim: 128 };

fn noise(count: usize) -> Vec<f32> {
    let number = |index: usize| (index as f32 * 0.618_034).fract() - 0.5;
    (0..count).map(number).collect()
}

fn buffer(rows: usize, width: usize) -> Buffer {
    let mut buffer = Buffer::default();
    buffer.reshape(rows, width);
    for (row, numbers) in buffer.rows_mut().zip(noise(rows * width).chunks(width)) {
        row.copy_from_slice(numbers);
    }
    buffer
}

/// The down projection, however its weights are kept; multiply-adds a second.
fn matmul(criterion: &mut Criterion) {
    let cpu = Cpu::new(2).unwrap();
    let bytes: Vec<u8> = noise(HIDDEN * INNER).into_iter().flat_map(f32::to_le_bytes).collect();
    let kinds = [
        ("f32", StoredType::F32, Quantisation::None),
        ("bf16", StoredType::Bf16, Quantisation::None),
        ("q8_0", StoredType::Bf16, Quantisation::Q8_0),
        ("int8", StoredType::Bf16, Quantisation::Int8),
        ("q4_k", StoredType::Bf16, Quantisation::Q4K),
    ];
    let mut group = criterion.benchmark_group("matmul");
    for (name, stored, quantisation) in kinds {
        let precision = Precision { quantisation, ..stored.into() };
        let parts = [RawTensor::from_f32_bytes(&bytes)];
        let weights = cpu.pack(&parts, INNER, precision).unwrap();
        for rows in [1, 3, 12, 512] {
            let (x, mut out) = (buffer(rows, INNER), Buffer::default());
            group.throughput(Throughput::Elements((rows * HIDDEN * INNER) as u64));
            group.bench_function(BenchmarkId::new(name, rows), |bencher| {
                bencher.iter(|| cpu.run(|| cpu.matmul(&x, &weights, &mut out)));
            });
        }
    }
}

/// Rows at the end of a context: one that decodes, and chunks of a prompt; keys a second.
fn attention(criterion: &mut Criterion) {
    let cpu = Cpu::new(2).unwrap();
    let shape = AttentionShape { heads: HEADS, scale: 0.088, window: None, both_ways: false };
    let mut group = criterion.benchmark_group("attention");
    for kept in [StoredType::F32, StoredType::Bf16] {
        for (count, context) in [(1, 1024), (256, 1024), (512, 512), (512, 4608)] {
            let pages: KvPages = cpu.pages(SHAPE, kept, context / PAGE).unwrap();
            let table: Vec<u32> = (0..(context / PAGE) as u32).collect();
            let (queries, mut out) = (buffer(count, HEADS * SHAPE.head_dim), Buffer::default());
            let positions: Vec<u32> = ((context - count) as u32..context as u32).collect();
            let rows = Rows {
                tokens: &vec![0; count],
                positions: &positions,
                sequences: &vec![0; count],
                segments: &[],
                tables: &[&table],
                states: &[],
            };
            let step = HostStep { rows, logit_rows: &[] };
            let keys: u32 = positions.iter().map(|position| position + 1).sum();
            group.throughput(Throughput::Elements(u64::from(keys)));
            let layer = LayerPages { pages: &pages, layer: 0 };
            let name = BenchmarkId::new(kept.to_string(), format!("{count} of {context}"));
            group.bench_function(name, |bencher| {
                bencher.iter(|| cpu.run(|| cpu.attention(&queries, shape, step, layer, &mut out)));
            });
        }
    }
}

/// A layer of the delta rule as wide as Qwen 3.5's 4B: a row that decodes and a chunk of a prompt; rows a second.
fn delta_rule(criterion: &mut Criterion) {
    let cpu = Cpu::new(2).unwrap();
    let shape =
        DeltaShape { key_heads: 16, value_heads: 32, key_dim: 128, value_dim: 128, taps: 4 };
    let vector = |count: usize| cpu.vector(noise(count)).unwrap();
    let weights = DeltaWeights {
        convolution: vector(shape.taps * shape.channels()),
        rates: cpu.vector(vec![0.3; shape.value_heads]).unwrap(),
        step_biases: vector(shape.value_heads),
        norm: vector(shape.value_dim),
        epsilon: 1e-6,
    };
    let mut states = cpu.states(StateShape { layers: 1, of_layer: shape }, 1).unwrap();
    let mut group = criterion.benchmark_group("delta_rule");
    for count in [1, 512] {
        let positions: Vec<u32> = (1..=count as u32).collect();
        let rows = Rows {
            tokens: &vec![0; count],
            positions: &positions,
            sequences: &vec![0; count],
            segments: &[],
            tables: &[],
            states: &[StateRows { slot: 0, drafted: 0 }],
        };
        let (step, mut out) = (HostStep { rows, logit_rows: &[] }, Buffer::default());
        group.throughput(Throughput::Elements(count as u64));
        group.bench_function(BenchmarkId::from_parameter(count), |bencher| {
            let run = |mut projected: Buffer| {
                let layer = LayerStates { states: &mut states, layer: 0 };
                cpu.run(|| cpu.delta_rule(&mut projected, &weights, shape, step, layer, &mut out));
            };
            let made = || buffer(count, shape.projected());
            bencher.iter_batched(made, run, BatchSize::PerIteration);
        });
    }
}

fn norm(criterion: &mut Criterion) {
    let cpu = Cpu::new(2).unwrap();
    let weight = cpu.vector(noise(HIDDEN)).unwrap();
    let mut group = criterion.benchmark_group("norm");
    for rows in [1, 512] {
        let (x, mut out) = (buffer(rows, HIDDEN), Buffer::default());
        group.throughput(Throughput::Elements((rows * HIDDEN) as u64));
        group.bench_function(BenchmarkId::from_parameter(rows), |bencher| {
            bencher.iter(|| cpu.run(|| cpu.rms_norm(&x, &weight, 1e-6, &mut out)));
        });
    }
}

/// A row of logits: made by the head of a model of 0.6B in int8, and looked through for numbers that are not finite.
fn sound_logits(criterion: &mut Criterion) {
    const VOCABULARY: usize = 151_936;
    let cpu = Cpu::new(2).unwrap();
    let bytes: Vec<u8> =
        noise(HIDDEN * VOCABULARY).into_iter().flat_map(f32::to_le_bytes).collect();
    let precision = Precision { quantisation: Quantisation::Int8, ..StoredType::Bf16.into() };
    let head = cpu.pack(&[RawTensor::from_f32_bytes(&bytes)], HIDDEN, precision).unwrap();
    let (x, mut out) = (buffer(1, HIDDEN), Buffer::default());
    let logits = noise(VOCABULARY);
    let mut group = criterion.benchmark_group("logits");
    group.bench_function("made", |bencher| {
        bencher.iter(|| cpu.run(|| cpu.matmul(&x, &head, &mut out)));
    });
    group.bench_function("checked", |bencher| bencher.iter(|| are_sound(black_box(&logits))));
}

/// Exact search: the 50 best of a million vectors of 256 numbers in f16; bytes a second.
fn search(criterion: &mut Criterion) {
    const ROWS: usize = 1_000_000;
    const WIDTH: usize = 256;
    let cpu = Cpu::new(2).unwrap();
    let mut bytes = Vec::new();
    for row in 0..ROWS {
        let vector: Vec<f32> =
            (row..row + WIDTH).map(|at| (at as f32 * 0.618_034).fract() - 0.5).collect();
        append(&vector, &mut bytes).unwrap();
    }
    let rows = VectorRows::new(&bytes, WIDTH).unwrap();
    let query = rows.query(&noise(WIDTH));
    let mut group = criterion.benchmark_group("search");
    group.throughput(Throughput::Bytes(bytes.len() as u64));
    group.bench_function("f16", |bencher| {
        bencher.iter(|| cpu.scan(&rows, &query, std::slice::from_ref(&(0..ROWS)), 50));
    });
}

criterion_group!(kernels, matmul, attention, delta_rule, norm, sound_logits, search);
criterion_main!(kernels);
