//! `y = x · Wᵀ`: one lane an output column, the inputs in order, one fused multiply-add each.
//!
//! A column's chain of additions is the same whatever the rows beside it, so any blocking gives the same bits;
//! the blocks below are chosen for registers and caches alone.

use super::lanes::{LANES, Lanes, Stored, vectorised};
use super::matrix::Tiles;
use super::{Buffer, Cpu, Disjoint, Matrix};

impl Cpu {
    /// `out[m, n] = Σ_k x[m, k] · weights[n, k]`; `x` is `[rows, inputs]`, `out` becomes `[rows, outputs]`.
    pub fn matmul(&self, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        debug_assert_eq!(x.width, weights.inputs);
        out.reshape(x.rows(), weights.outputs);
        if let Tiles::Q8_0(tiles) = &weights.tiles {
            return self.multiply_q8_0(x, tiles, out);
        }
        let rows = x.rows();
        let to = Disjoint::new(&mut out.data);
        let count = weights.outputs.div_ceil(LANES);
        self.split(count, rows * weights.inputs * weights.outputs, |tiles| {
            for tile in tiles {
                multiply_tile(self.isa, &x.data, rows, weights, tile, to);
            }
        });
    }
}

vectorised! {
    /// The columns of one tile, for all rows.
    fn multiply_tile(x: &[f32], rows: usize, weights: &Matrix, tile: usize, to: Disjoint<f32>) = multiply_tile_kernel
}

#[inline(always)]
fn multiply_tile_kernel<L: Lanes>(
    x: &[f32],
    rows: usize,
    weights: &Matrix,
    tile: usize,
    to: Disjoint<f32>,
) {
    let block = Block {
        inputs: weights.inputs,
        outputs: weights.outputs,
        column: tile * LANES,
        to,
    };
    match &weights.tiles {
        Tiles::F32(tiles) => block.multiply_rows::<L, f32>(x, rows, block.tile(tiles, tile)),
        Tiles::Bf16(tiles) => block.multiply_rows::<L, u16>(x, rows, block.tile(tiles, tile)),
        Tiles::Q8_0(_) => {}
    }
}

/// Where one tile's results go.
struct Block {
    inputs: usize,
    outputs: usize,
    column: usize,
    to: Disjoint<f32>,
}

impl Block {
    #[inline(always)]
    fn tile<'a, W>(&self, tiles: &'a [W], tile: usize) -> &'a [W] {
        &tiles[tile * self.inputs * LANES..][..self.inputs * LANES]
    }

    #[inline(always)]
    fn multiply_rows<L: Lanes, W: Stored>(&self, x: &[f32], rows: usize, weights: &[W]) {
        let mut row = 0;
        while row < rows {
            let x = &x[row * self.inputs..];
            row += match rows - row {
                8.. => self.multiply::<L, W, 8>(x, row, weights),
                4.. => self.multiply::<L, W, 4>(x, row, weights),
                2.. => self.multiply::<L, W, 2>(x, row, weights),
                _ => self.multiply::<L, W, 1>(x, row, weights),
            };
        }
    }

    /// The first `ROWS` rows of `x`, which are rows `row..` of the output. Gives `ROWS`.
    #[inline(always)]
    fn multiply<L: Lanes, W: Stored, const ROWS: usize>(
        &self,
        x: &[f32],
        row: usize,
        weights: &[W],
    ) -> usize {
        assert!(x.len() >= ROWS * self.inputs && weights.len() >= self.inputs * LANES);
        let mut sums = [L::splat(0.0); ROWS];
        for k in 0..self.inputs {
            // SAFETY: asserted above.
            let weight: L = unsafe { W::load(weights.as_ptr().add(k * LANES)) };
            for (m, sum) in sums.iter_mut().enumerate() {
                // SAFETY: asserted above.
                let value = unsafe { *x.get_unchecked(m * self.inputs + k) };
                *sum = L::splat(value).fma(weight, *sum);
            }
        }
        let columns = LANES.min(self.outputs - self.column);
        for (m, sum) in sums.into_iter().enumerate() {
            let offset = (row + m) * self.outputs + self.column;
            // SAFETY: inside the output's row `row + m`; each tile's columns are written by one thread alone.
            let to = unsafe { self.to.slice(offset, columns) };
            to.copy_from_slice(&sum.to_array()[..columns]);
        }
        ROWS
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
