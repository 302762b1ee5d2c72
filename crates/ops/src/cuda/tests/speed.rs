//! What products of many rows take on this GPU, by each kernel, and whether they agree bit for bit:
//! `lib-tests --ignored --exact cuda::tests::speed::products_of_many_rows --nocapture`.

#![allow(clippy::print_stdout, reason = "what it is for")]

use std::time::Instant;

use super::*;
use crate::cuda::Matrix;
use crate::cuda::attention::Seen;
use crate::cuda::kernels::{Epilogue, Product};
use crate::cuda::matmul::Matmul;
use crate::cuda::matrix::Format;
use crate::cuda::units::{self, Units};
use crate::cuda::wave::Room;
use crate::{Activation, AttentionShape, HeadNorms};

const IS_EMULATED: bool = cfg!(not(feature = "cuda"));
const SILU: Epilogue = Epilogue::Gated(Activation::Silu);

/// Of Qwen3-4B.
const PRODUCTS: [(&str, usize, usize, Epilogue); 4] = match IS_EMULATED {
    false => [
        ("qkv", 6144, 2560, Epilogue::Plain),
        ("gates, ups", 19_456, 2560, SILU),
        ("down", 2560, 9728, Epilogue::Plain),
        ("o", 2560, 4096, Epilogue::Plain),
    ],
    true => [
        ("qkv", 384, 96, Epilogue::Plain),
        ("gates, ups", 256, 64, SILU),
        ("down", 160, 128, Epilogue::Plain),
        ("o", 24, 256, Epilogue::Plain),
    ],
};
const ROWS: &[usize] = if IS_EMULATED {
    &[65, 256]
} else {
    &[16, 32, 64, 96, 128, 160, 192, 256, 384, 512, 768, 1024, 2048]
};
/// More than a second cache holds of weights takes its turn.
const COPIES: usize = if IS_EMULATED { 2 } else { 4 };
const LAUNCHES: usize = if IS_EMULATED { 2 } else { 20 };

/// Numbers of bf16 of either sign around one.
fn filled(gpu: &Cuda, count: usize, seed: u64) -> super::super::Region {
    let region = gpu.stream.allocate(2 * count, "a measurement").unwrap();
    let some = count.min(1 << 20);
    let number = |index: usize| {
        let bits = philox(seed, index as u64) as u16;
        ((bits & 0x8000) | 0x3C00 | (bits & 0x03FF)).to_le_bytes()
    };
    let bytes: Vec<u8> = (0..some).flat_map(number).collect();
    for first in (0..count).step_by(some) {
        let left = some.min(count - first);
        gpu.stream.write(&region, 2 * first, &bytes[..2 * left]);
    }
    region
}

fn bytes_of(gpu: &Cuda, buffer: &Buffer, rows: usize) -> Vec<u8> {
    let count = rows * buffer.stride * if buffer.is_wide { 4 } else { 2 };
    let mut back = gpu.stream.pin(count).unwrap();
    gpu.stream.download(&buffer.region, &mut back, count).unwrap();
    back.bytes()[..count].to_vec()
}

#[test]
#[ignore = "a measurement"]
fn products_of_many_rows() {
    let gpu = gpu();
    let without_units = Room { units: false, ..gpu.room };
    let multiprocessors = if IS_EMULATED { 3 } else { gpu.room.multiprocessors };
    let most = ROWS[ROWS.len() - 1];
    let mut sums = vec![[0.0; 2]; ROWS.len()];
    for (name, outputs, inputs, epilogue) in PRODUCTS {
        let weights: Vec<Matrix> = (0..COPIES as u64)
            .map(|copy| Matrix {
                format: Format::Bf16,
                outputs,
                inputs,
                values: filled(&gpu, outputs.next_multiple_of(16) * inputs, 7 + copy),
                scales: None,
                units: None,
            })
            .collect();
        let mut x = Buffer {
            region: filled(&gpu, most * inputs, 3),
            rows: 0,
            width: inputs,
            stride: inputs,
            is_wide: false,
        };
        let (width, kind) = match epilogue {
            Epilogue::Plain => (outputs, Numbers::Wide),
            Epilogue::Gated(_) => (outputs / 2, Numbers::Narrow),
        };
        for (index, &rows) in ROWS.iter().enumerate() {
            x.set_rows(rows);
            let size = Product { rows, outputs, inputs };
            let chosen = Units::of(size, multiprocessors);
            let other = gpu.kernels.matmul(Format::Bf16, epilogue, size, without_units);
            let mut kernels = vec![(short(other), other)];
            for tile_rows in units::ROWS {
                let tiles = rows.div_ceil(tile_rows) * outputs.div_ceil(128);
                let rounds = tiles / multiprocessors * multiprocessors;
                let mut wholes = vec![tiles, rounds, rounds.saturating_sub(multiprocessors)];
                wholes.dedup();
                for whole in wholes {
                    let cut = Units { rows: tile_rows, whole, ctas: multiprocessors };
                    let taken = chosen.rows == tile_rows && chosen.tiles(size) == cut.tiles(size);
                    let [whole, split] = cut.tiles(size);
                    let star = if taken { "*" } else { " " };
                    let label = format!("{star}units of {tile_rows}: {whole} whole, {split} split");
                    if kernels.iter().all(|(known, _)| *known != label) {
                        let form = (Format::Bf16, epilogue);
                        kernels.push((label, gpu.kernels.by_units(form, size, cut)));
                    }
                }
            }
            let mut expected = None;
            for (label, kernel) in kernels {
                let mut out = gpu.buffer(rows, width, kind).unwrap();
                out.set_rows(rows);
                let launch = |each: usize| {
                    let weights = &weights[each % COPIES];
                    gpu.launch_matmul((kernel, epilogue), &x, weights, &out);
                };
                (1..=COPIES).rev().for_each(launch);
                launch(0);
                let found = bytes_of(&gpu, &out, rows);
                let same = expected.get_or_insert_with(|| found.clone()) == &found;
                let best = (0..3).map(|_| {
                    let started = Instant::now();
                    (0..LAUNCHES).for_each(launch);
                    gpu.stream.synchronise().unwrap();
                    started.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64
                });
                let micros = best.fold(f64::MAX, f64::min);
                let rate = 2.0 * (rows * outputs * inputs) as f64 / micros / 1e6;
                let same = if same { "same bits" } else { "OTHER BITS" };
                println!(
                    "{name:10} {rows:4} rows {micros:7.1} us {rate:6.0} TFLOP/s {same} {label}"
                );
                match label.as_str() {
                    label if label.starts_with('*') => sums[index][1] += micros,
                    label if label.starts_with(' ') => {}
                    _ => sums[index][0] += micros,
                }
                assert!(!IS_EMULATED || same == "same bits");
            }
        }
    }
    for (rows, [other, units]) in ROWS.iter().zip(sums) {
        println!(
            "a layer's products of {rows} rows: {other:.0} us without units, {units:.0} us by *"
        );
    }
}

fn short(matmul: Matmul) -> String {
    let named = format!("{matmul:?}");
    let name = named.split(['(', ' ']).next().unwrap_or_default();
    let launch = matmul.launch();
    format!("{name}: {:?} of {}, {} to a cluster", launch.grid, launch.threads, launch.cluster)
}

/// Heads of Qwen3-4B.
#[test]
#[ignore = "a measurement"]
fn rotation_and_pages_of_many_rows() {
    let gpu = gpu();
    let (heads, kv_heads, head_dim) = if IS_EMULATED { (4, 2, 64) } else { (32, 8, 128) };
    let shape = PageShape { layers: 1, kv_heads, head_dim };
    let width = (heads + 2 * kv_heads) * head_dim;
    for rows in if IS_EMULATED { [16, 33, 64] } else { [16, 256, 2048] } {
        let sequences = sequences::Sequences::new(&[rows], 0);
        let mut qkv = gpu.hold(&noise(rows * width, 1), width, Numbers::Wide);
        let mut queries = gpu.buffer(rows, heads * head_dim, Numbers::Narrow).unwrap();
        let vector = |seed| gpu.vector(noise(head_dim, seed)).unwrap();
        let norms = HeadNorms { query: vector(2), key: vector(3), value: None, epsilon: 1e-6 };
        let rope =
            gpu.rope(&Rotation::by(vec![0.5; head_dim / 2]), sequences.limits().positions).unwrap();
        let mut pages = gpu.pages(shape, StoredType::Bf16, sequences.pages()).unwrap();
        let mut stage = gpu.stage(shape, heads, sequences.limits()).unwrap();
        let tables = sequences.tables();
        let mut micros = f64::MAX;
        gpu.compute(sequences.step(0..rows, &tables), &[], &mut stage, |step| {
            for _ in 0..4 {
                let started = Instant::now();
                for _ in 0..LAUNCHES {
                    let to = LayerPages { pages: &mut pages, layer: 0 };
                    gpu.rotate_and_store(&mut qkv, &mut queries, Some(&norms), &rope, step, to);
                }
                gpu.stream.synchronise().unwrap();
                micros = micros.min(started.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64);
            }
        });
        println!("rotate_and_store of {rows} rows: {micros:.1} us");
    }
}

/// The first and the second 2,048 rows of a prompt, by warps and by warpgroups; heads of Qwen3-4B and of Gemma3-4B.
#[test]
#[ignore = "a measurement"]
fn attention_of_prompts() {
    let gpu = gpu();
    let rows = if IS_EMULATED { 70 } else { 2048 };
    for (heads, kv_heads, head_dim, before) in
        [(32, 8, 128, 0), (32, 8, 128, rows), (8, 4, 256, 0), (8, 4, 256, rows)]
    {
        let shape = PageShape { layers: 1, kv_heads, head_dim };
        let sequences = sequences::Sequences::new(&[before + rows], 0);
        let mut pages = gpu.pages(shape, StoredType::Bf16, sequences.pages()).unwrap();
        for (region, seed) in [(&mut pages.keys, 1), (&mut pages.values, 2)] {
            *region = filled(&gpu, region.bytes() / 2, seed);
        }
        let mut queries = gpu.buffer(rows, heads * head_dim, Numbers::Narrow).unwrap();
        queries.region = filled(&gpu, queries.region.bytes() / 2, 3);
        queries.set_rows(rows);
        let mut stage = gpu.stage(shape, heads, sequences.limits()).unwrap();
        let tables = sequences.tables();
        let step = stage.send(&gpu.stream, sequences.step(before..before + rows, &tables), &[]);
        let seen = Seen {
            queries: &queries.region,
            shape: AttentionShape { heads, scale: 0.01, window: None, both_ways: false },
            step,
            layer: LayerPages { pages: &pages, layer: 0 },
        };
        let blocks = [kv_heads, step.blocks];
        let by_warps = gpu.kernels.attend_blocks(head_dim, blocks).unwrap();
        let by_warpgroups = gpu.kernels.attend_by_warpgroups(head_dim, blocks).unwrap();
        let mut results = Vec::new();
        for (label, launch) in [("warps", by_warps), ("warpgroups", by_warpgroups)] {
            let mut out = gpu.buffer(rows, heads * head_dim, Numbers::Narrow).unwrap();
            out.set_rows(rows);
            let best = (0..4).map(|_| {
                let started = Instant::now();
                (0..LAUNCHES).for_each(|_| gpu.attend_by(launch, seen, &out));
                gpu.stream.synchronise().unwrap();
                started.elapsed().as_secs_f64() * 1e6 / LAUNCHES as f64
            });
            let micros = best.fold(f64::MAX, f64::min);
            results.push(bytes_of(&gpu, &out, rows));
            let same = if results[0] == results[results.len() - 1] { "same" } else { "OTHER" };
            let products = 4.0 * (heads * head_dim * rows) as f64 * (before + rows / 2) as f64;
            let rate = products / micros / 1e6;
            println!(
                "attention, heads of {head_dim}, {rows} rows behind {before}: {micros:.1} us {rate:.0} TFLOP/s {same} bits by {label}"
            );
            assert!(!IS_EMULATED || same == "same");
        }
    }
}
