//! int8: weights in bytes under one scale a row, 8 bits a weight.
//!
//! `weight = scale · value`, with the scale the row's largest magnitude over 127, sixteen columns interleaved. Activations
//! share a scale by 128, so that their dots are added as integers four blocks at a time: what is left of a product beside its
//! integer instructions is one conversion and one multiply-add in thirty-two, where q8_0 has them in eight.

use std::io;

use super::super::lanes::{LANES, Lanes, vectorised};
use super::super::slab::Slab;
use super::BLOCK;
use super::kernel::{BYTES, Format};
use crate::shared::rounding::q8_0::place;

#[derive(Debug)]
pub struct Int8 {
    /// As [`super::Q8_0`] has them: `[tiles][blocks][8 steps][16 columns][4 values]`, each with 128 added.
    pub values: Slab<u8>,
    /// `[tiles][16 columns]`.
    pub scales: Slab<f32>,
}

impl Int8 {
    /// Room for `tiles` tiles of `blocks` blocks of sixteen columns.
    pub fn zeroed(tiles: usize, blocks: usize) -> io::Result<Int8> {
        let values = Slab::zeroed(tiles * blocks * BYTES)?;
        Ok(Int8 { values, scales: Slab::zeroed(tiles * LANES)? })
    }

    /// Weight `k` of column `lane` of a tile of `blocks` blocks.
    pub fn weight(&self, tile: usize, blocks: usize, lane: usize, k: usize) -> f32 {
        let at = (tile * blocks + k / BLOCK) * BYTES + place(lane, k % BLOCK);
        self.scales[tile * LANES + lane] * f32::from((self.values[at] ^ 0x80).cast_signed())
    }
}

vectorised! {
    /// Rounds a tile's weights `[blocks · 32][16 columns]`.
    pub fn quantise(weights: &[[f32; LANES]], values: &mut [u8], scales: &mut [f32; LANES]) = quantise_kernel
}

#[inline(always)]
fn quantise_kernel<L: Lanes>(
    weights: &[[f32; LANES]],
    values: &mut [u8],
    scales: &mut [f32; LANES],
) {
    let mut largest = L::splat(0.0);
    for weights in weights {
        let weights = L::from_array(weights);
        largest = largest.max(weights.max(L::splat(0.0).sub(weights)));
    }
    *scales = largest.div(L::splat(127.0)).to_array();
    let inverses = scales.map(|scale| if scale == 0.0 { 0.0 } else { 1.0 / scale });
    for (k, weights) in weights.iter().enumerate() {
        for (lane, (weight, inverse)) in weights.iter().zip(inverses).enumerate() {
            let value = (weight * inverse).round() as i8;
            values[k / BLOCK * BYTES + place(lane, k % BLOCK)] = value.cast_unsigned() ^ 0x80;
        }
    }
}

impl Format for Int8 {
    const GROUP: usize = 4;
    type Scales<L: Lanes> = ();

    #[inline(always)]
    fn values(&self) -> &[u8] {
        &self.values
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(&self, _at: usize, _tile: usize, _block: usize) {}

    #[inline(always)]
    fn add<L: Lanes>((): (), dots: L, scale: f32, _total: f32, sums: L) -> L {
        dots.fma(L::splat(scale), sums)
    }

    #[inline(always)]
    fn finish<L: Lanes>(&self, tile: usize, sums: L) -> L {
        sums.mul(L::from_array(&self.scales.as_chunks().0[tile]))
    }
}
