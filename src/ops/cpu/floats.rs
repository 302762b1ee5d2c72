//! `y = x · Wᵀ` with plain weights: one lane an output column, the inputs in order, one fused multiply-add each.
//!
//! A column's chain of additions is the same whatever the rows and tiles beside it, so any blocking gives the same
//! bits; the blocks below are chosen for registers and caches alone.

use std::ops::Range;

use super::lanes::{LANES, Lanes, Stored, vectorised};
use super::{Buffer, Cpu, Disjoint};

/// Rows that share a pass over a tile, on the widest machine.
const GROUP: usize = 12;

/// How far ahead of its use a weight is asked for.
const AHEAD_BYTES: usize = 4096;

impl Cpu {
    /// [`Cpu::matmul`] with tiles `[outputs / 16][inputs][16]` of f32.
    pub(super) fn multiply_f32(&self, x: &Buffer, tiles: &[f32], out: &mut Buffer) {
        let packed = self.group(x);
        let product = Product::new(&packed, x, tiles, out);
        self.split(product.tiles(), product.work(), |range| {
            multiply_f32(self.isa, &product, range);
        });
    }

    /// [`Cpu::matmul`] with tiles `[outputs / 16][inputs / 2][16][2]` of bf16.
    pub(super) fn multiply_bf16(&self, x: &Buffer, tiles: &[u16], out: &mut Buffer) {
        let packed = self.group(x);
        let product = Product::new(&packed, x, tiles, out);
        self.split(product.tiles(), product.work(), |range| {
            multiply_bf16(self.isa, &product, range);
        });
    }

    /// The rows of `x` in groups of [`GROUP`], each group `[inputs][rows]`: rows that lie a power of two apart would
    /// push each other out of the first-level cache.
    fn group(&self, x: &Buffer) -> Vec<f32> {
        let (rows, inputs) = (x.rows(), x.width);
        if rows == 1 {
            return x.data.clone();
        }
        let mut packed = vec![0.0; x.data.len()];
        let to = Disjoint::new(&mut packed);
        self.split(rows.div_ceil(GROUP), x.data.len(), |groups| {
            for first in groups.map(|group| group * GROUP) {
                let count = GROUP.min(rows - first);
                // SAFETY: each group is written by one thread alone.
                let group = unsafe { to.slice(first * inputs, count * inputs) };
                for row in 0..count {
                    let values = x.row(first + row).iter();
                    for (to, value) in group[row..].iter_mut().step_by(count).zip(values) {
                        *to = *value;
                    }
                }
            }
        });
        packed
    }
}

vectorised! {
    fn multiply_f32(product: &Product<'_, f32>, tiles: Range<usize>) = multiply_f32_kernel
}

#[inline(always)]
fn multiply_f32_kernel<L: Lanes>(product: &Product<'_, f32>, tiles: Range<usize>) {
    multiply_kernel::<L, f32>(product, tiles);
}

vectorised! {
    fn multiply_bf16(product: &Product<'_, u16>, tiles: Range<usize>) = multiply_bf16_kernel
}

#[inline(always)]
fn multiply_bf16_kernel<L: Lanes>(product: &Product<'_, u16>, tiles: Range<usize>) {
    multiply_kernel::<L, u16>(product, tiles);
}

/// One multiplication: grouped rows times tiles, to `[rows, outputs]`.
struct Product<'a, W> {
    x: &'a [f32],
    weights: &'a [W],
    rows: usize,
    inputs: usize,
    outputs: usize,
    to: Disjoint<f32>,
}

impl<'a, W: Stored> Product<'a, W> {
    fn new(packed: &'a [f32], x: &Buffer, weights: &'a [W], out: &mut Buffer) -> Product<'a, W> {
        Product {
            x: packed,
            weights,
            rows: x.rows(),
            inputs: x.width,
            outputs: out.width,
            to: Disjoint::new(&mut out.data),
        }
    }

    fn tiles(&self) -> usize {
        self.outputs.div_ceil(LANES)
    }

    fn work(&self) -> usize {
        self.rows * self.inputs * self.outputs
    }
}

/// The columns of `tiles`, for all rows.
#[inline(always)]
fn multiply_kernel<L: Lanes, W: Stored>(product: &Product<'_, W>, tiles: Range<usize>) {
    let mut tile = tiles.start;
    while tile < tiles.end {
        // Two at a time: one row alone hides the latency of its additions so, many rows share what they load.
        if L::TILES == 2 && tiles.end - tile >= 2 {
            product.multiply_tiles::<L, 2>(tile);
            tile += 2;
        } else {
            product.multiply_tiles::<L, 1>(tile);
            tile += 1;
        }
    }
}

impl<W: Stored> Product<'_, W> {
    #[inline(always)]
    fn multiply_tiles<L: Lanes, const TILES: usize>(&self, tile: usize) {
        let mut row = 0;
        while row < self.rows {
            let place = Place {
                tile,
                row,
                lane: row % GROUP,
                group: GROUP.min(self.rows - row / GROUP * GROUP),
            };
            let left = (place.group - place.lane).min(L::ROWS);
            row += if L::ROWS == GROUP {
                match left {
                    1 => self.multiply::<L, TILES, 1>(place),
                    2 => self.multiply::<L, TILES, 2>(place),
                    3 => self.multiply::<L, TILES, 3>(place),
                    4 => self.multiply::<L, TILES, 4>(place),
                    5 => self.multiply::<L, TILES, 5>(place),
                    6 => self.multiply::<L, TILES, 6>(place),
                    7 => self.multiply::<L, TILES, 7>(place),
                    8 => self.multiply::<L, TILES, 8>(place),
                    9 => self.multiply::<L, TILES, 9>(place),
                    10 => self.multiply::<L, TILES, 10>(place),
                    11 => self.multiply::<L, TILES, 11>(place),
                    _ => self.multiply::<L, TILES, 12>(place),
                }
            } else {
                match left {
                    1 => self.multiply::<L, TILES, 1>(place),
                    2 => self.multiply::<L, TILES, 2>(place),
                    3 => self.multiply::<L, TILES, 3>(place),
                    _ => self.multiply::<L, TILES, 4>(place),
                }
            };
        }
    }

    /// `TILES` tiles for `ROWS` rows of a group. Gives `ROWS`.
    #[inline(always)]
    fn multiply<L: Lanes, const TILES: usize, const ROWS: usize>(&self, place: Place) -> usize {
        let Place { tile, row, lane, group } = place;
        let inputs = self.inputs;
        let x = &self.x[(row - lane) * inputs..][..group * inputs];
        let stride = inputs.next_multiple_of(W::MULTIPLE) * LANES;
        let weights = &self.weights[tile * stride..(tile + TILES) * stride];
        let mut sums = [[L::splat(0.0); TILES]; ROWS];
        let mut k = 0;
        while k + 1 < inputs {
            let mut pairs = [[L::splat(0.0); 2]; TILES];
            for (n, pair) in pairs.iter_mut().enumerate() {
                // SAFETY: a tile holds `inputs` weights of sixteen columns.
                unsafe {
                    let from = weights.as_ptr().add(n * stride + k * LANES);
                    if lane == 0 && row == 0 {
                        L::prefetch(from.cast::<u8>().wrapping_add(AHEAD_BYTES));
                        if size_of::<W>() == 4 {
                            L::prefetch(from.cast::<u8>().wrapping_add(AHEAD_BYTES + 64));
                        }
                    }
                    *pair = W::load_pair(from);
                }
            }
            for half in 0..2 {
                for (m, sums) in sums.iter_mut().enumerate() {
                    // SAFETY: the group holds `inputs` times `group` values.
                    let value = unsafe { *x.get_unchecked((k + half) * group + lane + m) };
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
                let value = L::splat(x[k * group + lane + m]);
                for (n, sum) in sums.iter_mut().enumerate() {
                    // SAFETY: a tile holds `inputs` weights of sixteen columns, and one more where they lie in pairs.
                    let weight =
                        unsafe { W::load_last(weights.as_ptr().add(n * stride + k * LANES)) };
                    *sum = value.fma(weight, *sum);
                }
            }
        }
        for (m, sums) in sums.into_iter().enumerate() {
            for (n, sum) in sums.into_iter().enumerate() {
                let column = (tile + n) * LANES;
                let columns = LANES.min(self.outputs - column);
                let offset = (row + m) * self.outputs + column;
                // SAFETY: inside the output's row `row + m`; each tile's columns are written by one thread alone.
                let to = unsafe { self.to.slice(offset, columns) };
                to.copy_from_slice(&sum.to_array()[..columns]);
            }
        }
        ROWS
    }
}

/// Where a block starts: `tile`, and `row`, which is number `lane` of its `group` rows.
#[derive(Clone, Copy)]
struct Place {
    tile: usize,
    row: usize,
    lane: usize,
    group: usize,
}
