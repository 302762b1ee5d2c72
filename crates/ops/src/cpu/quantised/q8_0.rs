//! Products with q8_0's blocks.

use std::io;

use half::f16;

use super::super::lanes::{LANES, Lanes};
use super::super::slab::Slab;
use super::kernel::{BYTES, Format};
use crate::shared::rounding::q8_0::place;

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
