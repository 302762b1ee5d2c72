//! Matrices in blocks of 32 weights, times activations rounded to bytes.

mod kernel;
pub(super) mod q8_0;
mod rounded;

use std::ops::Range;

use super::dots::{Dots, dotted};
use super::lanes::LANES;
use super::{Buffer, Cpu, Disjoint};
use kernel::{Product, multiply_kernel};
pub use q8_0::Q8_0;

/// Weights, and activations, that share a scale.
pub const BLOCK: usize = 32;

impl Cpu {
    /// [`Cpu::matmul`] with weights of `blocks` blocks a tile.
    pub(super) fn multiply_q8_0(&self, x: &Buffer, weights: &Q8_0, out: &mut Buffer) {
        let rounded = self.round(x);
        let product = Product {
            activations: &rounded,
            weights,
            rows: x.rows(),
            blocks: x.width.div_ceil(BLOCK),
            outputs: out.width,
            to: Disjoint::new(&mut out.data),
        };
        let tiles = out.width.div_ceil(LANES);
        self.split(tiles, x.data.len() * out.width, |tiles| {
            multiply_q8_0(self.isa, &product, tiles);
        });
    }
}

dotted! {
    fn multiply_q8_0(product: &Product<'_, Q8_0>, tiles: Range<usize>) = multiply_q8_0_kernel
}

#[inline(always)]
fn multiply_q8_0_kernel<D: Dots>(product: &Product<'_, Q8_0>, tiles: Range<usize>) {
    multiply_kernel::<D, Q8_0>(product, tiles);
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::super::matmul::tests::{buffer, check_rows, noise, pack};
    use super::super::matrix::Tiles;
    use super::rounded::Block;
    use super::*;
    use crate::ops::{Precision, Quantisation, StoredType};

    const Q8: Precision = Precision {
        stored: StoredType::F32,
        quantisation: Quantisation::Q8_0,
    };

    /// One output by the definition: per block an exact dot of integers, its scale, one fused multiply-add.
    fn expected_q8_0(weights: &Q8_0, first: usize, lane: usize, blocks: &[Block]) -> f32 {
        let mut sum = 0.0f32;
        for (at, block) in blocks.iter().enumerate() {
            let scale = half::f16::from_bits(weights.scales[(first + at) * LANES + lane]).to_f32();
            let mut dot = 0;
            for k in 0..BLOCK {
                let byte = block.words[k / 4].to_le_bytes()[k % 4].cast_signed();
                let place = k / 4 * 64 + lane * 4 + k % 4;
                let weight = i32::from(weights.values[(first + at) * 512 + place]) - 128;
                dot += weight * i32::from(byte);
            }
            sum = (dot as f32).mul_add(scale * block.scale, sum);
        }
        sum
    }

    #[test]
    fn rows_do_not_depend_on_the_batch_the_threads_or_the_instruction_set() {
        for (inputs, outputs) in [(1, 1), (32, 5), (70, 33), (256, 48), (320, 500)] {
            let matrix = pack(&noise(inputs * outputs, 3), inputs, Q8);
            let Tiles::Q8_0(weights) = &matrix.tiles else {
                unreachable!()
            };
            let x = buffer(27, inputs);
            let blocks = inputs.div_ceil(BLOCK);
            let rounded = Cpu::new(1).unwrap().round(&x);
            let expected: Vec<f32> = (0..x.rows() * outputs)
                .map(|index| {
                    let (row, n) = (index / outputs, index % outputs);
                    let row = &rounded[row * blocks..][..blocks];
                    expected_q8_0(weights, n / LANES * blocks, n % LANES, row)
                })
                .collect();
            for isa in Isa::available() {
                check_rows(isa, &x, &matrix, &expected);
            }
        }
    }
}
