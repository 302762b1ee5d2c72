//! q8_0: 32 weights in bytes under one f16 scale, 8.5 bits a weight.
//!
//! `weight = scale · value`, with the scale the block's largest magnitude over 127: llama.cpp's format by its
//! published definition, sixteen columns interleaved.

use half::f16;

use super::{BLOCK, BYTES, STEP_BYTES};
use crate::shared::lanes::{LANES, Lanes, vectorised};

/// Where weight `k` of column `lane` lies in a block.
#[inline(always)]
pub fn place(lane: usize, k: usize) -> usize {
    k / 4 * STEP_BYTES + lane * 4 + k % 4
}

vectorised! {
    /// Rounds a tile's weights `[blocks · 32][16 columns]`.
    pub fn quantise(weights: &[[f32; LANES]], values: &mut [u8], scales: &mut [u16]) = quantise_kernel
}

#[inline(always)]
fn quantise_kernel<L: Lanes>(weights: &[[f32; LANES]], values: &mut [u8], scales: &mut [u16]) {
    let blocks = weights.as_chunks::<BLOCK>().0.iter();
    let values = values.as_chunks_mut::<BYTES>().0.iter_mut();
    let scales = scales.as_chunks_mut::<LANES>().0.iter_mut();
    for ((weights, values), scales) in blocks.zip(values).zip(scales) {
        let mut largest = L::splat(0.0);
        for weights in weights {
            let weights = L::from_array(weights);
            largest = largest.max(weights.max(L::splat(0.0).sub(weights)));
        }
        let exact = largest.div(L::splat(127.0)).to_array();
        let mut inverses = [0.0; LANES];
        for ((scale, exact), inverse) in scales.iter_mut().zip(exact).zip(&mut inverses) {
            *scale = f16::from_f32(exact).to_bits();
            *inverse = if exact == 0.0 { 0.0 } else { 1.0 / exact };
        }
        for (k, weights) in weights.iter().enumerate() {
            for (lane, (weight, inverse)) in weights.iter().zip(inverses).enumerate() {
                let value = (weight * inverse).round() as i8;
                values[place(lane, k)] = value.cast_unsigned() ^ 0x80;
            }
        }
    }
}
