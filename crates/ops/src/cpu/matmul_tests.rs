//! Products row by row against plain sums, on every instruction set.

use super::*;
use crate::checkpoint::RawTensor;
use crate::{Backend, HostStep, Precision, Rows, StoredType};

/// Nearly normal numbers of deviation 1.
pub fn noise(count: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let mut uniform = || {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    (0..count).map(|_| ((0..4).map(|_| uniform()).sum::<f32>() - 2.0) * 1.732).collect()
}

pub fn buffer(rows: usize, width: usize) -> Buffer {
    Buffer { data: noise(rows * width, 7), width }
}

pub fn pack(values: &[f32], inputs: usize, precision: Precision) -> Matrix {
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    Matrix::pack(&[RawTensor::from_f32_bytes(&bytes)], inputs, precision).unwrap()
}

/// Multiplies the first `1..` rows of `x` on 1 and 3 threads, and compares with `expected`, bit for bit.
pub fn check_rows(isa: Isa, x: &Buffer, weights: &Matrix, expected: &[f32]) {
    for threads in [1, 3] {
        let mut cpu = Cpu::new(threads).unwrap();
        cpu.isa = isa;
        for rows in 1..=x.rows() {
            let part = Buffer { data: x.data[..rows * x.width].to_vec(), width: x.width };
            let mut out = Buffer::default();
            cpu.run(|| cpu.matmul(&part, weights, &mut out));
            assert!(
                out.data.iter().zip(expected).all(|(a, b)| a.to_bits() == b.to_bits()),
                "{}×{}, {rows} rows, {threads} threads, {isa:?}",
                x.width,
                weights.outputs
            );
        }
    }
}

#[test]
fn rows_do_not_depend_on_the_batch_the_threads_or_the_instruction_set() {
    for stored in [StoredType::F32, StoredType::Bf16] {
        for (inputs, outputs) in [(1, 1), (7, 5), (64, 16), (100, 33), (48, 500)] {
            let values = noise(inputs * outputs, 3);
            let weights = pack(&values, inputs, stored.into());
            let x = buffer(27, inputs);
            let mut expected = Vec::new();
            for row in 0..x.rows() {
                for n in 0..outputs {
                    let mut sum = 0.0f32;
                    for k in 0..inputs {
                        sum = x.row(row)[k].mul_add(stored.round(values[n * inputs + k]), sum);
                    }
                    expected.push(sum);
                }
            }
            for isa in Isa::available() {
                if stored == StoredType::F32 || !isa.multiplies_bf16() {
                    check_rows(isa, &x, &weights, &expected);
                }
            }
        }
    }
}

#[test]
fn embedding_reads_the_packed_table() {
    let values = noise(37 * 20, 5);
    let bytes: Vec<u8> = values.iter().flat_map(|value| value.to_le_bytes()).collect();
    let (first, second) = bytes.split_at(20 * 20 * 4);
    for stored in [StoredType::F32, StoredType::Bf16] {
        let parts = [first, second].map(RawTensor::from_f32_bytes);
        let table = Matrix::pack(&parts, 20, stored.into()).unwrap();
        let cpu = Cpu::new(1).unwrap();
        let mut out = Buffer::default();
        let tokens = &[0, 36, 17];
        let rows = Rows {
            tokens,
            positions: &[],
            sequences: &[],
            segments: &[],
            tables: &[],
            states: &[],
        };
        cpu.embed(&table, HostStep { rows, logit_rows: &[] }, 2.0, &mut out);
        for (row, token) in [0usize, 36, 17].into_iter().enumerate() {
            let expected: Vec<f32> =
                values[token * 20..][..20].iter().map(|value| 2.0 * stored.round(*value)).collect();
            assert_eq!(out.row(row), expected);
        }
    }
}
