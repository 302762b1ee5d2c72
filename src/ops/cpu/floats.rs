//! `y = x · Wᵀ` with plain weights: one lane an output column, the inputs in order, one fused multiply-add each.
//!
//! A column's chain of additions is the same whatever the rows and tiles beside it, so any blocking gives the same
//! bits; the blocks below are chosen for registers and caches alone.

use std::ops::Range;

use super::lanes::{LANES, Lanes, Stored, vectorised};
use super::{Buffer, Cpu, Disjoint};

/// Rows that share a pass over a tile, on the widest machine.
const GROUP: usize = 12;

/// Rows and inputs of a block: 196 KiB of activations, and 16 KiB of a tile of f32. Inputs are even, as bf16 lie in pairs.
const ROWS_AT_ONCE: usize = 16 * GROUP;
const INPUTS_AT_ONCE: usize = 256;

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
///
/// Many rows are taken in blocks that stay in the second-level cache, and of these so many inputs at a time that a
/// tile's part stays in the first-level one; sums wait in the output between two parts.
#[inline(always)]
fn multiply_kernel<L: Lanes, W: Stored>(product: &Product<'_, W>, tiles: Range<usize>) {
    for first in (0..product.rows).step_by(ROWS_AT_ONCE) {
        let rows = first..product.rows.min(first + ROWS_AT_ONCE);
        // Few rows leave the cache to the weights, which are read in one go.
        let at_once = if rows.len() > GROUP { INPUTS_AT_ONCE } else { product.inputs.max(1) };
        for start in (0..product.inputs).step_by(at_once) {
            let inputs = start..product.inputs.min(start + at_once);
            let block = Block { rows: rows.clone(), inputs };
            let mut tile = tiles.start;
            while tile < tiles.end {
                // Two at a time: one row alone hides the latency of its additions so, many rows share what they load.
                if L::TILES == 2 && tiles.end - tile >= 2 {
                    product.multiply_tiles::<L, 2>(tile, &block);
                    tile += 2;
                } else {
                    product.multiply_tiles::<L, 1>(tile, &block);
                    tile += 1;
                }
            }
        }
    }
}

/// What is multiplied by one tile after another.
struct Block {
    rows: Range<usize>,
    inputs: Range<usize>,
}

impl<W: Stored> Product<'_, W> {
    #[inline(always)]
    fn multiply_tiles<L: Lanes, const TILES: usize>(&self, tile: usize, block: &Block) {
        let mut row = block.rows.start;
        while row < block.rows.end {
            let place = Place {
                tile,
                row,
                lane: row % GROUP,
                group: GROUP.min(self.rows - row / GROUP * GROUP),
                first: block.inputs.start,
                end: block.inputs.end,
            };
            // Where sixteen lanes are two registers, six rows fill them.
            let most = if L::TILES == 2 { GROUP } else { GROUP / 2 };
            let left = (place.group - place.lane).min(most);
            row += if L::TILES == 2 {
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
                    4 => self.multiply::<L, TILES, 4>(place),
                    5 => self.multiply::<L, TILES, 5>(place),
                    _ => self.multiply::<L, TILES, 6>(place),
                }
            };
        }
    }

    /// `TILES` tiles for `ROWS` rows of a group. Gives `ROWS`.
    #[inline(always)]
    fn multiply<L: Lanes, const TILES: usize, const ROWS: usize>(&self, place: Place) -> usize {
        let Place { tile, row, lane, group, first, end } = place;
        let inputs = self.inputs;
        let x = &self.x[(row - lane) * inputs..][..group * inputs];
        let stride = inputs.next_multiple_of(W::MULTIPLE) * LANES;
        let weights = &self.weights[tile * stride..(tile + TILES) * stride];
        let mut sums = [[L::splat(0.0); TILES]; ROWS];
        if first > 0 {
            self.visit::<L, TILES, ROWS>(place, &mut sums, |sum, part| {
                let mut array = [0.0; LANES];
                array[..part.len()].copy_from_slice(part);
                *sum = L::from_array(&array);
            });
        }
        let mut k = first;
        while k + 1 < end {
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
        if k < end {
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
        self.visit::<L, TILES, ROWS>(place, &mut sums, |sum, part| {
            part.copy_from_slice(&sum.to_array()[..part.len()]);
        });
        ROWS
    }

    /// Each of the sums with its part of the output.
    #[inline(always)]
    fn visit<L: Lanes, const TILES: usize, const ROWS: usize>(
        &self,
        place: Place,
        sums: &mut [[L; TILES]; ROWS],
        visit: impl Fn(&mut L, &mut [f32]),
    ) {
        for (m, sums) in sums.iter_mut().enumerate() {
            for (n, sum) in sums.iter_mut().enumerate() {
                let column = (place.tile + n) * LANES;
                let columns = LANES.min(self.outputs - column);
                let offset = (place.row + m) * self.outputs + column;
                // SAFETY: inside the output's row `row + m`; each tile's columns are written by one thread alone.
                visit(sum, unsafe { self.to.slice(offset, columns) });
            }
        }
    }
}

/// Where a block starts: `tile`, and `row`, which is number `lane` of its `group` rows; of its inputs `first..end`.
#[derive(Clone, Copy)]
struct Place {
    tile: usize,
    row: usize,
    lane: usize,
    group: usize,
    first: usize,
    end: usize,
}
