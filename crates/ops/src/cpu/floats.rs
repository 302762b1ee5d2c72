//! `y = x · Wᵀ` with plain weights: one lane an output column, the inputs in order, one fused multiply-add each.
//!
//! A column's chain of additions is the same whatever the rows and tiles beside it, so any blocking gives the same
//! bits; the blocks below are chosen for registers and caches alone.

use std::borrow::Cow;
use std::cell::Cell;
use std::marker::PhantomData;
use std::ops::Range;

use super::kept::Kept;
use super::lanes::{Counted, LANES, Lanes, by_count, far_bytes, vectorised};
use super::{Buffer, Cpu, Disjoint, blocks};

/// Rows that share a pass over a tile, on the widest machine; more are taken in blocks.
const GROUP: usize = 12;

/// How far ahead of its use a weight is asked for.
const AHEAD_BYTES: usize = 4096;

impl Cpu {
    /// Products with tiles `[outputs / 16][inputs][16]` of f32, or `[outputs / 16][inputs / 2][16][2]` of bf16.
    pub(super) fn multiply_plain<W: Kept>(&self, x: &Buffer, tiles: &[W], out: &mut Buffer) {
        let packed = self.group(x);
        let product = Product {
            x: &packed,
            weights: tiles,
            rows: x.rows(),
            inputs: x.width,
            outputs: out.width,
            to: Disjoint::new(&mut out.data),
        };
        let work = product.rows * product.inputs * product.outputs;
        self.split(product.outputs.div_ceil(LANES), work, |range| {
            multiply(self.isa, &product, range);
        });
        if let Cow::Owned(packed) = packed {
            SPARE.set(packed);
        }
    }

    /// A few rows of `x` as `[inputs][rows]`: rows that lie a power of two apart would push each other out of the first-level
    /// cache. More rows in blocks.
    fn group<'a>(&self, x: &'a Buffer) -> Cow<'a, [f32]> {
        let rows = x.rows();
        if rows == 1 {
            return Cow::Borrowed(&x.data);
        }
        let mut packed = SPARE.take();
        if rows > GROUP {
            blocks::pack(self, x, &mut packed);
            return Cow::Owned(packed);
        }
        packed.resize(x.data.len(), 0.0);
        for row in 0..rows {
            let to = packed[row..].iter_mut().step_by(rows);
            to.zip(x.row(row)).for_each(|(to, value)| *to = *value);
        }
        Cow::Owned(packed)
    }
}

thread_local! {
    /// What the last product's activations were packed in: fresh memory would be cleared page by page each time.
    static SPARE: Cell<Vec<f32>> = const { Cell::new(Vec::new()) };
}

vectorised! {
    fn multiply<W: Kept>(product: &Product<'_, W>, tiles: Range<usize>) = multiply_kernel<W>
}

/// One multiplication: rows times tiles, to `[rows, outputs]`.
pub struct Product<'a, W> {
    /// One row; up to [`GROUP`] rows `[inputs][rows]`; else as [`blocks::pack`] puts them.
    pub x: &'a [f32],
    weights: &'a [W],
    pub rows: usize,
    pub inputs: usize,
    outputs: usize,
    to: Disjoint<f32>,
}

/// The columns of `tiles`, for all rows.
#[inline(always)]
fn multiply_kernel<L: Lanes, W: Kept>(product: &Product<'_, W>, tiles: Range<usize>) {
    if product.rows > GROUP {
        return blocks::multiply_kernel::<L, W>(product, tiles);
    }
    let mut tile = tiles.start;
    while tile < tiles.end {
        // Two at a time: one row alone hides the latency of its additions so, many rows share what they load.
        if const { L::TILES == 2 } && tiles.end - tile >= 2 {
            product.multiply_tiles::<L, 2>(tile);
            tile += 2;
        } else {
            product.multiply_tiles::<L, 1>(tile);
            tile += 1;
        }
    }
}

/// A product's rows from `row` on, times `TILES` tiles.
struct At<'p, L, W, const TILES: usize> {
    product: &'p Product<'p, W>,
    row: usize,
    tile: usize,
    lanes: PhantomData<L>,
}

impl<L: Lanes, W: Kept, const TILES: usize> Counted for At<'_, L, W, TILES> {
    /// Where sixteen lanes are two registers, six rows fill them.
    const MOST: usize = if L::TILES == 2 { GROUP } else { GROUP / 2 };

    #[inline(always)]
    fn call<const ROWS: usize>(self) -> usize {
        self.product.multiply::<L, TILES, ROWS>(self.row, self.tile)
    }
}

impl<W: Kept> Product<'_, W> {
    pub fn tile(&self, tile: usize) -> &[W] {
        let stride = self.inputs.next_multiple_of(W::MULTIPLE) * LANES;
        &self.weights[tile * stride..(tile + 1) * stride]
    }

    #[inline(always)]
    fn multiply_tiles<L: Lanes, const TILES: usize>(&self, tile: usize) {
        let mut row = 0;
        while row < self.rows {
            let left = self.rows - row;
            let at = At::<L, W, TILES> { product: self, row, tile, lanes: PhantomData };
            row += by_count::<L, _>(left, at);
        }
    }

    /// `TILES` tiles for `ROWS` rows of a few. Gives `ROWS`.
    #[inline(always)]
    fn multiply<L: Lanes, const TILES: usize, const ROWS: usize>(
        &self,
        row: usize,
        tile: usize,
    ) -> usize {
        let (inputs, group) = (self.inputs, self.rows);
        let stride = inputs.next_multiple_of(W::MULTIPLE) * LANES;
        let weights = &self.weights[tile * stride..(tile + TILES) * stride];
        let far = far_bytes(TILES, stride * size_of::<W>());
        let mut sums = [[L::splat(0.0); TILES]; ROWS];
        let mut k = 0;
        while k + 1 < inputs {
            let mut pairs = [[L::splat(0.0); 2]; TILES];
            for (n, pair) in pairs.iter_mut().enumerate() {
                // SAFETY: a tile holds `inputs` weights of sixteen columns.
                unsafe {
                    let from = weights.as_ptr().add(n * stride + k * LANES);
                    if row == 0 {
                        // Of f32 two inputs are two lines.
                        for line in 0..size_of::<W>().div_ceil(2) {
                            let from = from.cast::<u8>().wrapping_add(64 * line);
                            L::prefetch(from.wrapping_add(AHEAD_BYTES));
                            L::prefetch_far(from.wrapping_add(far));
                        }
                    }
                    *pair = W::load_pair(from, LANES);
                }
            }
            for half in 0..2 {
                for (m, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: there are `inputs` times `group` values.
                    let value = unsafe { *self.x.get_unchecked((k + half) * group + row + m) };
                    let value = L::splat(value);
                    for (sum, pair) in sums.iter_mut().zip(&pairs) {
                        *sum = value.fma(pair[half], *sum);
                    }
                }
            }
            k += 2;
        }
        if k < inputs {
            for (m, sums) in sums.iter_mut().enumerate() {
                let value = L::splat(self.x[k * group + row + m]);
                for (n, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: a tile holds `inputs` weights of sixteen columns, and one more where they lie in pairs.
                    let [weight, _] =
                        unsafe { W::load_pair(weights.as_ptr().add(n * stride + k * LANES), 0) };
                    *sum = value.fma(weight, *sum);
                }
            }
        }
        self.store(row, tile, &sums);
        ROWS
    }

    /// The sums of a block as the output has them. What touches lanes is no closure: that would be without the instructions.
    #[inline(always)]
    pub fn load<L: Lanes, const TILES: usize, const ROWS: usize>(
        &self,
        row: usize,
        tile: usize,
        sums: &mut [[L; TILES]; ROWS],
    ) {
        for (m, sums) in sums.iter_mut().enumerate() {
            for (n, sum) in sums.iter_mut().enumerate() {
                let part = self.part(row + m, tile + n);
                *sum = if part.len() == LANES {
                    // SAFETY: it has sixteen values.
                    unsafe { L::load(part.as_ptr()) }
                } else {
                    let mut array = [0.0; LANES];
                    array[..part.len()].copy_from_slice(part);
                    L::from_array(&array)
                };
            }
        }
    }

    /// The sums of a block to the output.
    #[inline(always)]
    pub fn store<L: Lanes, const TILES: usize, const ROWS: usize>(
        &self,
        row: usize,
        tile: usize,
        sums: &[[L; TILES]; ROWS],
    ) {
        for (m, sums) in sums.iter().enumerate() {
            for (n, sum) in sums.iter().enumerate() {
                sum.store_first(self.part(row + m, tile + n));
            }
        }
    }

    /// A row's columns of a tile in the output.
    #[inline(always)]
    #[expect(
        clippy::mut_from_ref,
        reason = "the output is not behind this reference, and each tile has one thread"
    )]
    fn part(&self, row: usize, tile: usize) -> &mut [f32] {
        let column = tile * LANES;
        let columns = LANES.min(self.outputs - column);
        // SAFETY: inside the output's row; each tile's columns are written by one thread alone.
        unsafe { self.to.slice(row * self.outputs + column, columns) }
    }
}
