//! What encoders add to decoders, and products in f32: against the CPU's.

use super::*;
use crate::{Biased, EncoderBackend, LayerNorm, Rows, TextTables};

const ROWS: usize = 70;

/// Embedded texts, their norm, a biased branch's, biased numbers, and GELU of them; those that products read after the others.
pub fn all<B: Host + EncoderBackend>(ops: &B, width: usize) -> [Vec<f32>; 6] {
    let vector = |count, seed| ops.vector(noise(count, seed)).unwrap();
    let words = bytes(&noise(50 * width, 1).into_iter().map(round).collect::<Vec<_>>());
    let kept = StoredType::F32.into();
    let tables = TextTables {
        words: ops.pack(&[RawTensor::from_f32_bytes(&words)], width, kept).unwrap(),
        positions: vector(40 * width, 2),
        segments: vector(2 * width, 3),
    };
    let norm = LayerNorm { weight: vector(width, 4), bias: vector(width, 5), epsilon: 1e-12 };
    let bias = vector(width, 6);
    let column = |count: u32| (0..ROWS as u32).map(|row| row * 7 % count).collect::<Vec<_>>();
    let (tokens, positions, segments) = (column(50), column(40), column(2));
    let step = Rows {
        tokens: &tokens,
        positions: &positions,
        sequences: &[0; ROWS],
        segments: &segments,
        tables: &[&[0, 1]],
        states: &[],
    };
    let room = |kind| ops.buffer(ROWS, width, kind).unwrap();
    let (mut x, mut normed) = (room(Numbers::Wide), room(Numbers::Narrow));
    let mut stage = ops.stage(SMALL_PAGES, 1, limits(ROWS, 1, 64)).unwrap();
    ops.compute(step, &[], &mut stage, |step| ops.embed_text(&tables, step, &mut x));
    let embedded = ops.numbers(&x, ROWS, Numbers::Wide);
    ops.layer_norm(&mut x, None, &norm, &mut normed);
    let first = ops.numbers(&normed, ROWS, Numbers::Narrow);
    let branch = ops.hold(&noise(ROWS * width, 7), width, Numbers::Wide);
    let biased = Biased { products: &branch, bias: &bias };
    ops.layer_norm(&mut x, Some(biased), &norm, &mut normed);
    let second = ops.numbers(&x, ROWS, Numbers::Wide);
    let second_narrow = ops.numbers(&normed, ROWS, Numbers::Narrow);
    ops.add_bias(&mut x, &bias);
    let biased = ops.numbers(&x, ROWS, Numbers::Wide);
    let mut active = room(Numbers::Narrow);
    ops.gelu(Biased { products: &x, bias: &bias }, &mut active);
    [embedded, second, biased, first, second_narrow, ops.numbers(&active, ROWS, Numbers::Narrow)]
}

/// Means over rows of different widths are summed in another order.
fn assert_close(found: &[f32], exact: &[f32], what: &str) {
    let off = 2e-6 * largest(exact);
    for (index, (found, exact)) in found.iter().zip(exact).enumerate() {
        assert!((found - exact).abs() <= off, "{what}, {index}: {found}, not {exact}");
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn embeddings_norms_biases_and_gelu_are_the_cpus() {
    let (narrow, wide, cpu) = (gpu(), gpu_in_f32(), Cpu::new(1).unwrap());
    for width in [4, 30, 200, 768] {
        let exact = all(&cpu, width);
        let (in_bf16, in_f32) = (all(&narrow, width), all(&wide, width));
        assert_eq!(bits(&in_f32[0]), bits(&exact[0]), "width {width}");
        for (index, exact) in exact.iter().enumerate() {
            let what = format!("width {width}, result {index}");
            assert_close(&in_f32[index], exact, &what);
            match index {
                0..3 => assert_close(&in_bf16[index], exact, &what),
                _ => assert_rounded(&in_bf16[index], &in_f32[index], &what),
            }
        }
    }
}

/// Products of the first `rows` rows.
pub fn products<B: Host>(ops: &B, (outputs, inputs): (usize, usize), rows: usize) -> Vec<f32> {
    let scale = 1.0 / (inputs as f32).sqrt();
    let weights: Vec<f32> = noise(outputs * inputs, 1).iter().map(|one| one * scale).collect();
    let weights = bytes(&weights);
    let part = RawTensor::from_f32_bytes(&weights);
    let weights = ops.pack(&[part], inputs, StoredType::F32.into()).unwrap();
    let x = ops.hold(&noise(rows * inputs, 2), inputs, Numbers::Wide);
    let mut out = ops.buffer(rows, outputs, Numbers::Wide).unwrap();
    ops.matmul(&x, &weights, &mut out);
    ops.numbers(&out, rows, Numbers::Wide)
}

/// Outputs and inputs in whole tiles and not.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn products_in_f32_are_the_cpus_and_rows_do_not_meet() {
    let (gpu, cpu) = (gpu_in_f32(), Cpu::new(1).unwrap());
    for shape in [(6, 4), (24, 32), (272, 100), (128, 1024)] {
        let all = check_rows(&gpu, shape);
        assert_close(&all, &products(&cpu, shape, 130), &format!("{shape:?}"));
    }
}

/// Products of 130 rows, and that those of fewer have their bits.
fn check_rows(gpu: &Cuda, shape @ (outputs, _): (usize, usize)) -> Vec<f32> {
    let all = products(gpu, shape, 130);
    for rows in [1, 7, 64] {
        let part = products(gpu, shape, rows);
        assert!(bits(&part) == bits(&all[..rows * outputs]), "{shape:?}, {rows} rows");
    }
    all
}
