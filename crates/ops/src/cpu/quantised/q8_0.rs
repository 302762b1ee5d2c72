//! q8_0: 32 weights in bytes under one f16 scale, 8.5 bits a weight.
//!
//! `weight = scale · value`, with the scale the block's largest magnitude over 127: llama.cpp's format by its
//! published definition, sixteen columns interleaved.

use std::io;

use half::f16;

use super::super::dots::STEP_BYTES;
use super::super::lanes::{LANES, Lanes, vectorised};
use super::super::slab::Slab;
use super::BLOCK;
use super::kernel::{BYTES, Format};

#[derive(Debug)]
pub struct Q8_0 {
    /// `[tiles][blocks][8 steps][16 columns][4 values]`, each with 128 added.
    pub values: Slab<u8>,
    /// `[tiles][blocks][16 columns]`, f16 bits.
    pub scales: Slab<u16>,
}

impl Q8_0 {
    /// Room for `blocks` blocks of sixteen columns.
    pub fn zeroed(blocks: usize) -> io::Result<Q8_0> {
        Ok(Q8_0 { values: Slab::zeroed(blocks * BYTES)?, scales: Slab::zeroed(blocks * LANES)? })
    }

    /// The block `at`'s weight `k` of column `lane`.
    pub fn weight(&self, at: usize, lane: usize, k: usize) -> f32 {
        let value = self.values[at * BYTES + place(lane, k)] ^ 0x80;
        let scale = f16::from_bits(self.scales[at * LANES + lane]);
        scale.to_f32() * f32::from(value.cast_signed())
    }
}

/// Where weight `k` of column `lane` lies in a block.
#[inline(always)]
pub(crate) fn place(lane: usize, k: usize) -> usize {
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

impl Format for Q8_0 {
    const GROUP: usize = 1;
    type Scales<L: Lanes> = L;

    #[inline(always)]
    fn values(&self) -> &[u8] {
        &self.values
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(&self, at: usize, _tile: usize, _block: usize) -> L {
        // SAFETY: the caller vouches for the block.
        unsafe { L::load_f16(self.scales.as_ptr().add(at * LANES)) }
    }

    #[inline(always)]
    fn add<L: Lanes>(scales: L, dots: L, scale: f32, _total: f32, sums: L) -> L {
        dots.fma(scales.mul(L::splat(scale)), sums)
    }
}
