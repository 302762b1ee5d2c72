//! Tiles of quantised weights times rounded rows: an exact dot per block of 32, then one fused multiply-add each.
//!
//! A column's chain over its blocks is the same whatever the rows and tiles beside it; these are chosen for
//! registers and caches alone. More rows than one tile's registers hold are taken in [`super::panels`].

use std::ops::Range;

use super::super::Disjoint;
use super::super::dots::Dots;
use super::super::lanes::{LANES, Lanes};
use super::BLOCK;
use super::rounded::Block;

/// A way to keep weights: blocks of 32 by 16 columns, tile after tile.
pub trait Format: Sync {
    /// A tile holds a whole multiple of so many blocks.
    const TOGETHER: usize;
    /// A block's scales, one a column.
    type Scales<L: Lanes>: Copy;

    /// Steps `step` and `step + 4` of the block `at`.
    ///
    /// # Safety
    /// There are more than `at` blocks over all tiles, and four pairs of steps a block.
    unsafe fn pair<D: Dots>(&self, at: usize, step: usize) -> [D::Weights; 2];
    /// A block's dots before its first step.
    fn before<D: Dots>(activations: &Block) -> D;
    /// Asks for what [`Format::scales`] will load of the block `at`, if there is one.
    fn prefetch_scales<D: Dots>(&self, at: usize);
    /// Asks for what [`Format::pair`] will load of the block `at`, if there is one.
    fn prefetch<D: Dots>(&self, at: usize, step: usize);
    /// # Safety
    /// There are more than `at` blocks over all tiles.
    unsafe fn scales<L: Lanes>(&self, at: usize) -> Self::Scales<L>;
    /// `sums` plus a block's `dots`, scaled by the weights' and the activations' scales.
    fn add<L: Lanes>(scales: Self::Scales<L>, dots: L, activations: &Block, sums: L) -> L;

    /// Blocks whose activations share a scale, and whose dots are added as integers.
    const GROUP: usize;
    /// Numbers a block has for a column: none, a scale, or a scale and a minimum, which comes off each sum times the sum of the
    /// block's activations.
    const SCALES: usize;
    /// Where the block `at` has its values as [`Dots::load_bytes`] takes them, all blocks of a tile one after another.
    fn bytes(&self, at: usize) -> Option<*const u8>;
    /// Bytes that `values` values take where [`Format::bytes`] has none.
    fn unpacked_bytes(values: usize) -> usize;
    /// The block `at`'s values as [`Dots::load_bytes`] takes them.
    ///
    /// # Safety
    /// There are more than `at` blocks over all tiles; `to` has room for 32 times sixteen bytes.
    unsafe fn store_bytes(&self, at: usize, to: *mut u8);
    /// The block `at`'s [`Format::SCALES`].
    ///
    /// # Safety
    /// There are more than `at` blocks over all tiles; `to` has room for twice sixteen numbers.
    unsafe fn store_scales<L: Lanes>(&self, at: usize, to: *mut f32);
    /// The output from a tile's `sums`.
    #[inline(always)]
    fn finish<L: Lanes>(&self, _tile: usize, sums: L) -> L {
        sums
    }
}

/// One multiplication: `[rows][blocks]` activations times tiles of `blocks` blocks, to `[rows, outputs]`.
pub struct Product<'a, F> {
    pub activations: &'a [Block],
    pub weights: &'a F,
    pub rows: usize,
    pub blocks: usize,
    pub outputs: usize,
    pub to: Disjoint<f32>,
}

/// Blocks between the one that is multiplied and the one that is asked for.
const AHEAD: usize = 8;

/// The columns of `tiles`, for all rows.
#[inline(always)]
pub fn multiply_kernel<D: Dots, F: Format>(product: &Product<'_, F>, tiles: Range<usize>) {
    for tile in tiles {
        product.multiply_tile::<D>(tile, 0..product.rows);
    }
}

impl<F: Format> Product<'_, F> {
    #[inline(always)]
    fn multiply_tile<D: Dots>(&self, tile: usize, rows: Range<usize>) {
        let mut row = rows.start;
        while row < rows.end {
            let left = (rows.end - row).min(D::ROWS);
            row += if D::ROWS > 4 {
                match left {
                    1 => self.multiply::<D, 1>(tile, row),
                    2 => self.multiply::<D, 2>(tile, row),
                    3 => self.multiply::<D, 3>(tile, row),
                    4 => self.multiply::<D, 4>(tile, row),
                    5 => self.multiply::<D, 5>(tile, row),
                    6 => self.multiply::<D, 6>(tile, row),
                    7 => self.multiply::<D, 7>(tile, row),
                    8 => self.multiply::<D, 8>(tile, row),
                    9 => self.multiply::<D, 9>(tile, row),
                    10 => self.multiply::<D, 10>(tile, row),
                    11 => self.multiply::<D, 11>(tile, row),
                    _ => self.multiply::<D, 12>(tile, row),
                }
            } else {
                match left {
                    1 => self.multiply::<D, 1>(tile, row),
                    2 => self.multiply::<D, 2>(tile, row),
                    3 => self.multiply::<D, 3>(tile, row),
                    _ => self.multiply::<D, 4>(tile, row),
                }
            };
        }
    }

    /// The tile for rows `row..row + ROWS`. Gives `ROWS`.
    #[inline(always)]
    fn multiply<D: Dots, const ROWS: usize>(&self, tile: usize, row: usize) -> usize {
        let blocks = self.blocks;
        let stride = blocks.next_multiple_of(F::TOGETHER);
        let activations = &self.activations[row * blocks..(row + ROWS) * blocks];
        let mut sums = [<D::Floats as Lanes>::splat(0.0); ROWS];
        for first in (0..blocks).step_by(F::GROUP) {
            let mut dots = [D::zero(); ROWS];
            for (m, dots) in dots.iter_mut().enumerate() {
                // SAFETY: `activations` holds ROWS rows of `blocks`.
                *dots = F::before(unsafe { activations.get_unchecked(m * blocks + first) });
            }
            for block in first..blocks.min(first + F::GROUP) {
                let at = tile * stride + block;
                for step in 0..BLOCK / 8 {
                    self.weights.prefetch::<D>(at + AHEAD, step);
                    // SAFETY: the tile is there, of `blocks` blocks of eight steps.
                    let pair: [D::Weights; 2] = unsafe { self.weights.pair::<D>(at, step) };
                    for (half, weights) in pair.into_iter().enumerate() {
                        for (m, dots) in dots.iter_mut().enumerate() {
                            // SAFETY: as above.
                            let activations =
                                unsafe { activations.get_unchecked(m * blocks + block) };
                            *dots = dots.add(weights, activations.words[step + 4 * half]);
                        }
                    }
                }
            }
            // SAFETY: as above.
            let scales = unsafe { self.weights.scales::<D::Floats>(tile * stride + first) };
            for (m, sums) in sums.iter_mut().enumerate() {
                // SAFETY: as above.
                let activations = unsafe { activations.get_unchecked(m * blocks + first) };
                *sums = F::add(scales, dots[m].to_floats(), activations, *sums);
            }
        }
        for (m, sums) in sums.into_iter().enumerate() {
            self.store(self.weights.finish(tile, sums), row + m, tile * LANES);
        }
        ROWS
    }

    #[inline(always)]
    fn store<L: Lanes>(&self, sums: L, row: usize, column: usize) {
        let columns = LANES.min(self.outputs - column);
        // SAFETY: inside the output's row `row`; each tile's columns are written by one thread alone.
        let to = unsafe { self.to.slice(row * self.outputs + column, columns) };
        if columns == LANES {
            // SAFETY: `to` holds sixteen values.
            unsafe { sums.store(to.as_mut_ptr()) };
        } else {
            to.copy_from_slice(&sums.to_array()[..columns]);
        }
    }
}
