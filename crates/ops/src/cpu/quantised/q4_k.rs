//! Products with q4_k's blocks.

use std::io;

use half::f16;

use super::super::dots::{Dots, STEP_BYTES};
use super::super::lanes::{FAR_BYTES, LANES, Lanes};
use super::super::slab::Slab;
use super::BLOCK;
use super::kernel::{AHEAD, Format};
use crate::shared::rounding::q4_k::{TOGETHER, VALUES, place};

#[derive(Debug)]
pub struct Q4K {
    /// `[tiles][blocks][4 steps][16 columns][4 values]`, a step's in the lower halves, those of the fourth step after
    /// it in the upper ones.
    pub values: Slab<u8>,
    /// `[tiles][blocks][scale, minimum][16 columns]`.
    pub scales: Slab<u8>,
    /// `[tiles][groups][d, dmin][16 columns]`, f16 bits.
    pub units: Slab<u16>,
    /// Of a tile.
    groups: usize,
}

impl Q4K {
    pub fn zeroed(tiles: usize, blocks: usize) -> io::Result<Q4K> {
        let groups = blocks.div_ceil(TOGETHER);
        Ok(Q4K {
            values: Slab::zeroed(tiles * blocks * VALUES)?,
            scales: Slab::zeroed(tiles * blocks * 2 * LANES)?,
            units: Slab::zeroed(tiles * groups * 2 * LANES)?,
            groups,
        })
    }

    /// The weight `k` of column `lane` in a tile of `blocks` blocks.
    pub fn weight(&self, tile: usize, blocks: usize, lane: usize, k: usize) -> f32 {
        let (block, k) = (k / BLOCK, k % BLOCK);
        let at = tile * blocks + block;
        let (place, shift) = place(lane, k);
        let value = self.values[at * VALUES + place] >> shift & 15;
        let [scale, minimum] = [0, LANES].map(|part| self.scales[at * 2 * LANES + part + lane]);
        let units = self.units_of(tile, block) + lane;
        let [d, dmin] = [0, LANES].map(|part| f16::from_bits(self.units[units + part]).to_f32());
        d * f32::from(scale) * f32::from(value) - dmin * f32::from(minimum)
    }

    /// Where the units of a tile's block begin.
    #[inline(always)]
    pub fn units_of(&self, tile: usize, block: usize) -> usize {
        (tile * self.groups + block / TOGETHER) * 2 * LANES
    }
}

impl Format for Q4K {
    const GROUP: usize = 1;
    /// Scale and minimum.
    type Scales<L: Lanes> = (L, L);

    #[inline(always)]
    fn values(&self) -> &[u8] {
        &self.values
    }

    #[inline(always)]
    unsafe fn pair<D: Dots>(&self, at: usize, step: usize) -> [D::Weights; 2] {
        // SAFETY: the caller vouches for the block, which has four pairs of steps.
        unsafe { D::load_nibbles(self.values.as_ptr().add(at * VALUES + step * STEP_BYTES)) }
    }

    #[inline(always)]
    fn prefetch<D: Dots>(&self, at: usize, step: usize) {
        let from = self.values.as_ptr().wrapping_add(at * VALUES + step * STEP_BYTES);
        D::Floats::prefetch(from.wrapping_add(AHEAD * VALUES));
        D::Floats::prefetch_far(from.wrapping_add(FAR_BYTES));
    }

    #[inline(always)]
    fn before<D: Dots>(_: i32) -> D {
        D::zero()
    }

    #[inline(always)]
    unsafe fn scales<L: Lanes>(&self, at: usize, tile: usize, block: usize) -> (L, L) {
        // SAFETY: the caller vouches for the block.
        unsafe {
            let scales = self.scales.as_ptr().add(at * 2 * LANES);
            let units = self.units.as_ptr().add(self.units_of(tile, block));
            (
                L::load_f16(units).mul(L::load_u8(scales)),
                L::load_f16(units.add(LANES)).mul(L::load_u8(scales.add(LANES))),
            )
        }
    }

    #[inline(always)]
    fn add<L: Lanes>((weights, minimum): (L, L), dots: L, scale: f32, total: f32, sums: L) -> L {
        let sums = dots.fma(weights.mul(L::splat(scale)), sums);
        minimum.fma(L::splat(-total), sums)
    }
}
