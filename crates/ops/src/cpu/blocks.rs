//! `y = x · Wᵀ` with plain weights and many rows, in blocks that stay in the caches: bit for bit what row by row gives.

use std::ops::Range;

use super::floats::Product;
use super::kept::Kept;
use super::lanes::{LANES, Lanes};

use super::{Buffer, Cpu, Disjoint};

/// Rows at most and inputs of a block: 204 KiB of activations for the second-level cache, 16 KiB of a tile for the first.
const ROWS: usize = 192;
const INPUTS: usize = 256;
/// What lies between two rows of a block: rows a power of two apart would push each other out of the first-level cache.
const STRIDE: usize = INPUTS + 16;
/// Rows that are multiplied together, at most.
const TOGETHER: usize = 12;

/// Rows of a block, so that all blocks have about as many: the last one would read all weights for a few rows else.
fn block_rows(rows: usize) -> usize {
    rows.div_ceil(rows.div_ceil(ROWS)).next_multiple_of(TOGETHER)
}

/// Copies rows to `packed` in the order in which blocks read them: `[blocks of rows][blocks of inputs][rows][STRIDE]`.
pub fn pack(cpu: &Cpu, x: &Buffer, packed: &mut Vec<f32>) {
    let (rows, inputs, each) = (x.rows(), x.width, block_rows(x.rows()));
    let parts = inputs.div_ceil(INPUTS);
    packed.resize(rows.div_ceil(each) * parts * each * STRIDE, 0.0);
    let to = Disjoint::new(packed);
    cpu.split(rows, rows * inputs, |range| {
        for row in range {
            let (block, at) = (row / each, row % each);
            for (part, from) in x.row(row).chunks(INPUTS).enumerate() {
                let start = ((block * parts + part) * each + at) * STRIDE;
                // SAFETY: each row has places of its own, and is copied by one thread alone.
                unsafe { to.slice(start, from.len()) }.copy_from_slice(from);
            }
        }
    });
}

/// What the tiles of a block are multiplied with.
struct Block<'a> {
    /// `[rows][STRIDE]`
    x: &'a [f32],
    rows: Range<usize>,
    inputs: Range<usize>,
}

/// The columns of `tiles`, for all rows. Sums wait in the output between two blocks of inputs.
#[inline(always)]
pub fn multiply_kernel<L: Lanes, W: Kept>(product: &Product<'_, W>, tiles: Range<usize>) {
    let each = block_rows(product.rows);
    let mut blocks = product.x.chunks(each * STRIDE);
    let room = if W::TOGETHER > 1 { L::TILES * INPUTS * LANES } else { 0 };
    let mut widened = vec![0.0; room];
    for first in (0..product.rows).step_by(each) {
        let rows = first..product.rows.min(first + each);
        for (start, x) in (0..product.inputs).step_by(INPUTS).zip(&mut blocks) {
            let inputs = start..product.inputs.min(start + INPUTS);
            let block = Block { x, rows: rows.clone(), inputs };
            let mut tile = tiles.start;
            while tile < tiles.end {
                if const { L::TILES == 2 } && tiles.end - tile >= 2 {
                    multiply_tiles::<L, W, 2, 12, 6>(product, &block, tile, &mut widened);
                    tile += 2;
                } else if const { L::TILES == 2 } {
                    multiply_tiles::<L, W, 1, 12, 6>(product, &block, tile, &mut widened);
                    tile += 1;
                } else {
                    // Where sixteen lanes are two registers, six rows fill them.
                    multiply_tiles::<L, W, 1, 6, 3>(product, &block, tile, &mut widened);
                    tile += 1;
                }
            }
        }
    }
}

/// `TILES` tiles for every row of a block: `MOST` rows at a time, then `FEWER`, then one.
#[inline(always)]
fn multiply_tiles<L: Lanes, W: Kept, const TILES: usize, const MOST: usize, const FEWER: usize>(
    product: &Product<'_, W>,
    block: &Block<'_>,
    tile: usize,
    widened: &mut [f32],
) {
    let Range { start, end } = block.inputs;
    let mut weights = [std::ptr::null(); TILES];
    let parts = widened.len() / TILES;
    for (n, from) in weights.iter_mut().enumerate() {
        let part = &mut widened[n * parts..(n + 1) * parts];
        *from = W::widen::<L>(&product.tile(tile + n)[start * LANES..], end - start, part);
    }
    let place = |row| BlockStart { weights, row, tile };
    let mut row = block.rows.start;
    while row + MOST <= block.rows.end {
        multiply_rows::<L, W, TILES, MOST>(product, block, place(row));
        row += MOST;
    }
    while row + FEWER <= block.rows.end {
        multiply_rows::<L, W, TILES, FEWER>(product, block, place(row));
        row += FEWER;
    }
    while row < block.rows.end {
        multiply_rows::<L, W, TILES, 1>(product, block, place(row));
        row += 1;
    }
}

/// The first row, the first tile, and where the weights of each tile's inputs lie, sixteen columns an input.
struct BlockStart<const TILES: usize> {
    weights: [*const f32; TILES],
    row: usize,
    tile: usize,
}

/// `ROWS` rows times `TILES` tiles.
#[inline(always)]
fn multiply_rows<L: Lanes, W: Kept, const TILES: usize, const COUNT: usize>(
    product: &Product<'_, W>,
    block: &Block<'_>,
    place: BlockStart<TILES>,
) {
    let BlockStart { weights, row, tile } = place;
    let x = &block.x[(row - block.rows.start) * STRIDE..][..COUNT * STRIDE];
    let mut sums = [[L::splat(0.0); TILES]; COUNT];
    if block.inputs.start > 0 {
        product.load(row, tile, &mut sums);
    }
    for k in 0..block.inputs.len() {
        let mut inputs = [L::splat(0.0); TILES];
        for (weights, from) in inputs.iter_mut().zip(weights) {
            // SAFETY: a tile's part holds sixteen weights of every input of the block.
            *weights = unsafe { L::load(from.add(k * LANES)) };
        }
        for (m, sums) in sums.iter_mut().enumerate() {
            // SAFETY: the block holds `COUNT` rows, and `k` is below their stride.
            let value = L::splat(unsafe { *x.get_unchecked(m * STRIDE + k) });
            for (sum, weights) in sums.iter_mut().zip(inputs) {
                *sum = value.fma(weights, *sum);
            }
        }
    }
    product.store(row, tile, &sums);
}
