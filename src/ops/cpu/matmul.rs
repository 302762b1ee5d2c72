//! `y = x · Wᵀ`, however the weights are kept.

#[cfg(test)]
pub(super) mod tests;

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
            #[cfg(target_arch = "x86_64")]
            Tiles::Bf16(tiles) if self.isa.multiplies_bf16() => {
                self.multiply_rounded(x, tiles, out);
            }
            Tiles::Bf16(tiles) => self.multiply_bf16(x, tiles, out),
            Tiles::Q8_0(tiles) => self.multiply_q8_0(x, tiles, out),
            Tiles::Int8(tiles) => self.multiply_int8(x, tiles, out),
            Tiles::Q4K(tiles) => self.multiply_q4_k(x, tiles, out),
        }
    }
}
