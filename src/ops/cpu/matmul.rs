//! `y = x · Wᵀ`, however the weights are kept.

use super::matrix::Tiles;
use super::{Buffer, Cpu, Matrix};

impl Cpu {
    /// `out[m, n] = Σ_k x[m, k] · weights[n, k]`; `x` is `[rows, inputs]`, `out` becomes `[rows, outputs]`.
    ///
    /// A row of the result is a function of the row of `x` alone, bit for bit.
    pub fn matmul(&self, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        debug_assert_eq!(x.width, weights.inputs);
        out.reshape(x.rows(), weights.outputs);
        match &weights.tiles {
            Tiles::F32(tiles) => self.multiply_f32(x, tiles, out),
            Tiles::Bf16(tiles) => self.multiply_bf16(x, tiles, out),
            Tiles::Q8_0(tiles) => self.multiply_q8_0(x, tiles, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::*;
    use crate::ops::StoredType;
    use crate::ops::checkpoint::RawTensor;

    fn noise(count: usize, seed: u32) -> Vec<f32> {
        let mut state = seed;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (state >> 8) as f32 / (1 << 23) as f32 - 1.0
            })
            .collect()
    }

    fn bytes(values: &[f32]) -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    }

    fn buffer(rows: usize, width: usize, seed: u32) -> Buffer {
        Buffer {
            data: noise(rows * width, seed),
            width,
        }
    }

    #[test]
    fn rows_do_not_depend_on_the_batch_the_threads_or_the_instruction_set() {
        for stored in [StoredType::F32, StoredType::Bf16] {
            for (inputs, outputs) in [(1, 1), (7, 5), (64, 16), (100, 33), (48, 500)] {
                let values = noise(inputs * outputs, 3);
                let bytes = bytes(&values);
                let weights =
                    Matrix::pack(&[RawTensor::from_f32_bytes(&bytes)], inputs, stored.into())
                        .unwrap();
                let x = buffer(21, inputs, 7);
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
                for threads in [1, 3] {
                    for isa in Isa::available() {
                        let mut cpu = Cpu::new(threads).unwrap();
                        cpu.isa = isa;
                        for rows in 1..=x.rows() {
                            let part = Buffer {
                                data: x.data[..rows * inputs].to_vec(),
                                width: inputs,
                            };
                            let mut out = Buffer::default();
                            cpu.matmul(&part, &weights, &mut out);
                            assert!(
                                out.data
                                    .iter()
                                    .zip(&expected)
                                    .all(|(a, b)| a.to_bits() == b.to_bits()),
                                "{stored} {inputs}×{outputs}, {rows} rows, {threads} threads, {}",
                                isa.name()
                            );
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn embedding_reads_the_packed_table() {
        let values = noise(37 * 20, 5);
        let bytes = bytes(&values);
        let (first, second) = bytes.split_at(20 * 20 * 4);
        let table = Matrix::pack(
            &[first, second].map(RawTensor::from_f32_bytes),
            20,
            StoredType::F32.into(),
        )
        .unwrap();
        let cpu = Cpu::new(1).unwrap();
        let mut out = Buffer::default();
        cpu.embed(&table, &[0, 36, 17], 2.0, &mut out);
        for (row, token) in [0usize, 36, 17].into_iter().enumerate() {
            let expected: Vec<f32> = values[token * 20..][..20]
                .iter()
                .map(|value| 2.0 * value)
                .collect();
            assert_eq!(out.row(row), expected);
        }
    }
}
