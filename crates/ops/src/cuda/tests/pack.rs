//! Packing puts each weight where kernels look for it.

use super::*;
use crate::Rows;
use crate::cuda::Matrix;

/// Outputs and inputs: whole tiles, and parts of them; blocks of 256 inputs, and parts of them.
const SHAPES: [(usize, usize); 6] =
    [(16, 32), (24, 32), (50, 40), (272, 160), (37, 520), (16, 1152)];

/// Rows of very different size, one of them all zeros.
fn weights(outputs: usize, inputs: usize) -> Vec<f32> {
    let mut weights = noise(outputs * inputs, 1);
    for (output, row) in weights.chunks_exact_mut(inputs).enumerate() {
        let size = [0.02, 1.0, 0.0, 30.0][output % 4];
        row.iter_mut().for_each(|weight| *weight *= size);
    }
    weights
}

/// All rows of a table, times `scale`.
fn embed_all(gpu: &Cuda, table: &Matrix, scale: f32) -> Vec<f32> {
    let tokens: Vec<u32> = (0..table.outputs as u32).collect();
    let zeros = vec![0; table.outputs];
    let rows = Rows {
        tokens: &tokens,
        positions: &zeros,
        sequences: &zeros,
        segments: &[],
        tables: &[&[0]],
        states: &[],
    };
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(table.outputs, 1, 32)).unwrap();
    let room = gpu.buffer(table.outputs, table.inputs, Numbers::Wide);
    let mut out = room.unwrap();
    gpu.compute(rows, &[], &mut stage, |step| {
        gpu.embed(table, step, scale, &mut out);
    });
    gpu.numbers(&out, table.outputs, Numbers::Wide)
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn a_tables_rows_come_out_as_they_were_rounded() {
    let gpu = gpu();
    for (outputs, inputs) in SHAPES {
        let weights = weights(outputs, inputs);
        // Of several parts, as queries, keys and values are.
        let (first, rest) = weights.split_at(5 * inputs);
        let [first, rest] = [first, rest].map(bytes);
        let parts = [&first, &rest].map(|part| RawTensor::from_f32_bytes(part));
        for kept in KEPT {
            let rounded = rounded_weights(&weights, inputs, kept);
            let table = gpu.pack(&parts, inputs, kept_as(kept)).unwrap();
            for scale in [1.0, 11.3] {
                let scaled: Vec<f32> = rounded.iter().map(|weight| scale * weight).collect();
                assert!(
                    embed_all(&gpu, &table, scale) == scaled,
                    "{kept}, {outputs} × {inputs}, times {scale}"
                );
            }
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn gates_and_ups_lie_eight_by_eight() {
    let gpu = gpu();
    let (features, inputs) = (20, 96);
    let [gate, up] = [2, 3].map(|seed| noise(features * inputs, seed));
    let raw = [&gate, &up].map(|part| bytes(part));
    let parts = [&raw[0], &raw[1]].map(|part| RawTensor::from_f32_bytes(part));
    for kept in KEPT {
        let packed = gpu.pack_gated(&parts, inputs, kept_as(kept)).unwrap();
        // The table ends where its last group of eight features does.
        let table = Matrix { outputs: features.next_multiple_of(8) * 2, ..packed };
        let found = embed_all(&gpu, &table, 1.0);
        let mut expected = vec![0.0; found.len()];
        for (half, part) in [&gate, &up].into_iter().enumerate() {
            let rounded = rounded_weights(part, inputs, kept);
            for (feature, weights) in rounded.chunks_exact(inputs).enumerate() {
                let output = feature / 8 * 16 + half * 8 + feature % 8;
                expected[output * inputs..][..inputs].copy_from_slice(weights);
            }
        }
        assert!(found == expected, "{kept}");
    }
}
