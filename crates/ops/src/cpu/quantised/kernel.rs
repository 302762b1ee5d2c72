//! Tiles of quantised weights times rounded rows: an exact dot per block of 32, then one fused multiply-add each.
//!
//! A column's chain over its blocks is the same whatever the rows and tiles beside it; these are chosen for
//! registers and caches alone.

use std::marker::PhantomData;
use std::ops::Range;

use super::super::dots::{Dots, STEP_BYTES};
use super::super::lanes::{Counted, FAR_BYTES, LANES, Lanes, by_count};
use super::super::{Buffer, Disjoint};
use super::BLOCK;
use super::rounded::group_of;

pub use crate::shared::rounding::BYTES;

/// A way to keep weights: blocks of 32 by 16 columns, tile after tile.
pub trait Format: Sync {
    /// Blocks whose activations share a scale, and whose dots are added as integers.
    const GROUP: usize;
    /// A block's scales, one a column.
    type Scales<L: Lanes>: Copy;

    /// The weights: of a format of bytes one a weight, a step after the other.
    fn values(&self) -> &[u8];
    /// Steps `step` and `step + 4` of the block `at`.
    ///
    /// # Safety
    /// There are more than `at` blocks over all tiles, and four pairs of steps a block.
    #[inline(always)]
    unsafe fn pair<D: Dots>(&self, at: usize, step: usize) -> [D::Weights; 2] {
        // SAFETY: the caller vouches for the block, which has eight steps.
        unsafe {
            let from = self.values().as_ptr().add(at * BYTES + step * STEP_BYTES);
            [D::load_bytes(from), D::load_bytes(from.add(4 * STEP_BYTES))]
        }
    }
    /// The dots before the first step of the first block of a group, whose activations have this offset.
    #[inline(always)]
    fn before<D: Dots>(offset: i32) -> D {
        D::before_bytes(offset)
    }
    /// Asks for what will be loaded in a while, when [`Format::pair`] loads this.
    #[inline(always)]
    fn prefetch<D: Dots>(&self, at: usize, step: usize) {
        for step in [step, step + 4] {
            let from = self.values().as_ptr().wrapping_add(at * BYTES + step * STEP_BYTES);
            D::Floats::prefetch(from.wrapping_add(AHEAD * BYTES));
            D::Floats::prefetch_far(from.wrapping_add(FAR_BYTES));
        }
    }
    /// Of the block `at`, which is the tile's `block`th.
    ///
    /// # Safety
    /// There are more than `at` blocks over all tiles.
    unsafe fn scales<L: Lanes>(&self, at: usize, tile: usize, block: usize) -> Self::Scales<L>;
    /// `sums` plus a group's `dots`, scaled by the weights' and the activations' scales; `total` is theirs too.
    fn add<L: Lanes>(scales: Self::Scales<L>, dots: L, scale: f32, total: f32, sums: L) -> L;
    /// The output from a tile's `sums`.
    #[inline(always)]
    fn finish<L: Lanes>(&self, _tile: usize, sums: L) -> L {
        sums
    }
}

/// One multiplication: activations, in groups or as panels, times tiles of `blocks` blocks, to `[rows, outputs]`.
pub struct Product<'a, A, F> {
    pub activations: &'a [A],
    pub weights: &'a F,
    pub rows: usize,
    pub blocks: usize,
    pub outputs: usize,
    pub to: Disjoint<f32>,
}

impl<'a, A, F> Product<'a, A, F> {
    pub fn new(
        activations: &'a [A],
        x: &Buffer,
        weights: &'a F,
        out: &mut Buffer,
    ) -> Product<'a, A, F> {
        Product {
            activations,
            weights,
            rows: x.rows(),
            blocks: x.width.div_ceil(BLOCK),
            outputs: out.width,
            to: Disjoint::new(&mut out.data),
        }
    }
}

/// Blocks between the one that is multiplied and the one that is asked for.
pub const AHEAD: usize = 8;

/// Rows whose activations stay in the second-level cache while tiles pass by.
const ROWS_AT_ONCE: usize = 240;

/// Rows that share a pass over tiles, of so many in all.
#[inline(always)]
pub fn rows_together<D: Dots>(rows: usize) -> usize {
    if rows <= D::ROWS || D::ROWS_OF_TWO == 1 { D::ROWS } else { D::ROWS_OF_TWO }
}

/// The columns of `tiles`, for all rows.
#[inline(always)]
pub fn multiply_kernel<D: Dots, F: Format>(product: &Product<'_, u32, F>, tiles: Range<usize>) {
    if const { D::ROWS_OF_TWO == 1 } || rows_together::<D>(product.rows) == D::ROWS {
        for tile in tiles {
            product.multiply_tile::<D>(tile);
        }
        return;
    }
    for first in (0..product.rows).step_by(ROWS_AT_ONCE) {
        let rows = first..product.rows.min(first + ROWS_AT_ONCE);
        let mut tile = tiles.start;
        while tile < tiles.end {
            if tiles.end - tile >= 2 {
                product.multiply_tiles::<D, 2>(tile, rows.clone());
            } else {
                product.multiply_tiles::<D, 1>(tile, rows.clone());
            }
            tile += 2;
        }
    }
}

/// A product's rows from `row` on, times `TILES` tiles.
struct At<'p, D, F, const TILES: usize> {
    product: &'p Product<'p, u32, F>,
    row: usize,
    tile: usize,
    dots: PhantomData<D>,
}

impl<D: Dots, F: Format, const TILES: usize> Counted for At<'_, D, F, TILES> {
    const MOST: usize = if TILES == 1 { D::ROWS } else { D::ROWS_OF_TWO };

    #[inline(always)]
    fn call<const ROWS: usize>(self) -> usize {
        self.product.multiply::<D, TILES, ROWS>(self.tile, self.row)
    }
}

impl<F: Format> Product<'_, u32, F> {
    #[inline(always)]
    fn multiply_tile<D: Dots>(&self, tile: usize) {
        let mut row = 0;
        while row < self.rows {
            let left = self.rows - row;
            let at = At::<D, F, 1> { product: self, row, tile, dots: PhantomData };
            row += by_count::<D, _>(left, at);
        }
    }

    #[inline(always)]
    fn multiply_tiles<D: Dots, const TILES: usize>(&self, tile: usize, rows: Range<usize>) {
        let mut row = rows.start;
        while row < rows.end {
            let left = (rows.end - row).min(D::ROWS_OF_TWO);
            let at = At::<D, F, TILES> { product: self, row, tile, dots: PhantomData };
            row += by_count::<D, _>(left, at);
        }
    }

    /// Tiles `tile..tile + TILES` for rows `row..row + ROWS`. Gives `ROWS`.
    #[inline(always)]
    fn multiply<D: Dots, const TILES: usize, const ROWS: usize>(
        &self,
        tile: usize,
        row: usize,
    ) -> usize {
        let blocks = self.blocks;
        // SAFETY: rows are rounded in groups of those that are multiplied together.
        let group = unsafe { group_of::<ROWS>(self.activations, row, blocks) };
        let zero = <D::Floats as Lanes>::splat(0.0);
        let mut sums = [[zero; TILES]; ROWS];
        let mut dots = [[D::zero(); TILES]; ROWS];
        for (block, activations) in group.iter().enumerate() {
            let at = tile * blocks + block;
            if block.is_multiple_of(F::GROUP) {
                for (dots, &offset) in dots.iter_mut().zip(&activations.offsets) {
                    *dots = [F::before(offset); TILES];
                }
            }
            for step in 0..BLOCK / 8 {
                if TILES == 1 {
                    self.weights.prefetch::<D>(at, step);
                }
                // SAFETY: the tiles are there, each of `blocks` blocks of eight steps.
                let first: [D::Weights; 2] = unsafe { self.weights.pair::<D>(at, step) };
                let mut pairs = [first; TILES];
                for (n, pair) in pairs.iter_mut().enumerate().skip(1) {
                    // SAFETY: as above.
                    *pair = unsafe { self.weights.pair::<D>(at + n * blocks, step) };
                }
                for half in 0..2 {
                    for (dots, &word) in dots.iter_mut().zip(&activations.words[step + 4 * half]) {
                        for (dots, pair) in dots.iter_mut().zip(&pairs) {
                            *dots = dots.add(pair[half], word);
                        }
                    }
                }
            }
            if F::GROUP > 1 && !(block + 1).is_multiple_of(F::GROUP) && block + 1 < blocks {
                continue;
            }
            for n in 0..TILES {
                // SAFETY: as above.
                let scales =
                    unsafe { self.weights.scales::<D::Floats>(at + n * blocks, tile + n, block) };
                for (m, sums) in sums.iter_mut().enumerate() {
                    let (scale, total) = (activations.scales[m], activations.totals[m]);
                    sums[n] = F::add(scales, dots[m][n].to_floats(), scale, total, sums[n]);
                }
            }
        }
        for (m, sums) in sums.into_iter().enumerate() {
            for (n, sums) in sums.into_iter().enumerate() {
                self.store(sums, row + m, tile + n);
            }
        }
        ROWS
    }
}

impl<A, F: Format> Product<'_, A, F> {
    /// A row's outputs of a tile, from their sums.
    #[inline(always)]
    pub fn store<L: Lanes>(&self, sums: L, row: usize, tile: usize) {
        self.put(self.weights.finish(tile, sums), row, tile);
    }

    /// The row's outputs in a tile's place.
    #[inline(always)]
    pub fn put<L: Lanes>(&self, outputs: L, row: usize, tile: usize) {
        let column = tile * LANES;
        let columns = LANES.min(self.outputs - column);
        // SAFETY: inside the output's row `row`; each tile's columns are written by one thread alone.
        let to = unsafe { self.to.slice(row * self.outputs + column, columns) };
        outputs.store_first(to);
    }
}
