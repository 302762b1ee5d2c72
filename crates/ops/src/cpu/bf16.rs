//! `y = x · Wᵀ` where the machine multiplies bf16: activations are rounded to bf16, products are exact, sums are f32.
//!
//! A sum's tree is the instruction's: pairs of inputs in order with AVX-512, groups of 32 with tiles, whatever the
//! rows beside it.

use std::ops::Range;

use super::amx::{self, Bf16Product, Configuration, SIDE};
use super::lanes::{Avx512, Counted, LANES, Lanes, apart, by_count, far_bytes};
use super::{Buffer, Cpu, Disjoint, Isa};

/// Inputs of one step of a tile; weights and activations are padded to whole steps.
pub const STEP: usize = 32;

/// Rows that share a pass over the weights with tiles.
const GROUP: usize = 2 * SIDE;

/// Bytes of weights that stay in the second-level cache while groups of rows pass by.
const WEIGHT_BYTES: usize = 1 << 19;

impl Cpu {
    /// The product with tiles `[outputs / 16][inputs / 2][16][2]` of bf16, padded to whole steps.
    pub(super) fn multiply_rounded(&self, x: &Buffer, tiles: &[u16], out: &mut Buffer) {
        let product = Product {
            activations: &self.round_to_bf16(x),
            weights: tiles,
            rows: x.rows(),
            steps: x.width.div_ceil(STEP),
            outputs: out.width,
            to: Disjoint::new(&mut out.data),
        };
        let count = out.width.div_ceil(LANES);
        let work = x.data.len() * out.width;
        self.split(count, work, |range| match self.isa {
            // SAFETY: the machine has tiles, and a thread multiplies one range at a time.
            Isa::Amx => unsafe { product.multiply_by_tiles(range) },
            // SAFETY: the machine dots bf16.
            _ => unsafe { product.multiply_by_dots(range) },
        });
    }

    /// The rows of `x` in groups of [`GROUP`], each `[steps][rows][32]`.
    fn round_to_bf16(&self, x: &Buffer) -> Vec<u16> {
        let (rows, width) = (x.rows(), x.width.next_multiple_of(STEP));
        let mut rounded = vec![0; rows * width];
        let to = Disjoint::new(&mut rounded);
        self.split(rows.div_ceil(GROUP), x.data.len(), |groups| {
            for first in groups.map(|group| group * GROUP) {
                let count = GROUP.min(rows - first);
                // SAFETY: each group is written by one thread alone.
                let group = unsafe { to.slice(first * width, count * width) };
                for row in 0..count {
                    let steps = group.chunks_exact_mut(STEP).skip(row).step_by(count);
                    for (to, values) in steps.zip(x.row(first + row).chunks(STEP)) {
                        for (to, value) in to.iter_mut().zip(values) {
                            *to = half::bf16::from_f32(*value).to_bits();
                        }
                    }
                }
            }
        });
        rounded
    }
}

/// One multiplication: rounded rows times tiles of `steps` steps, to `[rows, outputs]`.
struct Product<'a> {
    activations: &'a [u16],
    weights: &'a [u16],
    rows: usize,
    steps: usize,
    outputs: usize,
    to: Disjoint<f32>,
}

impl Product<'_> {
    /// Numbers of a tile of weights.
    fn tile_size(&self) -> usize {
        self.steps * STEP * LANES
    }

    /// The columns of `tiles`, for all rows, by AMX.
    ///
    /// # Safety
    /// The machine has it, and no configuration of this thread lives.
    unsafe fn multiply_by_tiles(&self, tiles: Range<usize>) {
        let at_once = (WEIGHT_BYTES / (2 * self.tile_size())).max(2) & !1;
        for start in tiles.clone().step_by(at_once) {
            let tiles = start..tiles.end.min(start + at_once);
            for first in (0..self.rows).step_by(GROUP) {
                let rows = GROUP.min(self.rows - first);
                // SAFETY: the caller vouches for the machine and for this thread.
                let _configuration =
                    unsafe { Configuration::load(rows.min(SIDE), rows.saturating_sub(SIDE)) };
                for tile in tiles.clone().step_by(2) {
                    // SAFETY: the configuration is that of these rows.
                    unsafe { self.multiply_group(first, rows, tile, tile + 1 < tiles.end) };
                }
            }
        }
    }

    /// Rows `first..first + rows` of one group times `tile`, and the next one where there are `two`.
    ///
    /// # Safety
    /// A configuration of the group's rows is loaded; the tiles are there.
    unsafe fn multiply_group(&self, first: usize, rows: usize, tile: usize, two: bool) {
        let width = self.steps * STEP;
        let column = tile * LANES;
        let columns = if two { 2 * LANES } else { LANES };
        let is_whole = column + columns <= self.outputs;
        let mut ragged = [0.0f32; GROUP * 2 * LANES];
        let weights = self.weights[tile * self.tile_size()..].as_ptr();
        let second = if two { self.tile_size() } else { 0 };
        let product = Bf16Product {
            activations: self.activations[first * width..(first + rows) * width].as_ptr(),
            activation_bytes: rows * STEP * size_of::<u16>(),
            weights: [weights, weights.wrapping_add(second)],
            steps: self.steps,
            to: if is_whole {
                self.to.at(first * self.outputs + column)
            } else {
                ragged.as_mut_ptr()
            },
            stride: size_of::<f32>() * if is_whole { self.outputs } else { columns },
        };
        // SAFETY: the group's activations, the tiles' weights and the columns' sums are there; the latter are
        // written by one thread alone.
        unsafe {
            match (rows > SIDE, two) {
                (false, false) => amx::multiply_one_by_one(product),
                (false, true) => amx::multiply_one_by_two(product),
                (true, false) => amx::multiply_two_by_one(product),
                (true, true) => amx::multiply_two_by_two(product),
            }
        }
        if !is_whole {
            let kept = self.outputs - column;
            for (row, sums) in ragged.chunks_exact(columns).take(rows).enumerate() {
                // SAFETY: as above.
                let to = unsafe { self.to.slice((first + row) * self.outputs + column, kept) };
                to.copy_from_slice(&sums[..kept]);
            }
        }
    }
}

/// Rows that share a pass over two tiles with dots: what the registers hold.
const ROWS: usize = 12;

/// How far ahead of its use a weight is asked for.
const AHEAD_BYTES: usize = 4096;

impl Product<'_> {
    /// The columns of `tiles`, for all rows, by dots of pairs.
    ///
    /// # Safety
    /// The machine has AVX-512 with bf16.
    #[target_feature(enable = "avx512f,avx512bf16")]
    unsafe fn multiply_by_dots(&self, tiles: Range<usize>) {
        for tile in tiles.clone().step_by(2) {
            for first in (0..self.rows).step_by(GROUP) {
                let rows = GROUP.min(self.rows - first);
                for lane in (0..rows).step_by(ROWS) {
                    let place = BlockStart { tile, first, rows, lane };
                    let left = rows - lane;
                    if tile + 1 < tiles.end {
                        by_count::<Bf16, _>(left, At::<2> { product: self, place });
                    } else {
                        by_count::<Bf16, _>(left, At::<1> { product: self, place });
                    }
                }
            }
        }
    }

    #[inline(always)]
    fn dot<const TILES: usize, const COUNT: usize>(&self, place: BlockStart) -> usize {
        const PAIRS: usize = STEP / 2;
        let width = self.steps * STEP;
        let activations = &self.activations[place.first * width..][..place.rows * width];
        let (activations, _) = activations.as_chunks::<2>();
        let weights = &self.weights[place.tile * self.tile_size()..][..TILES * self.tile_size()];
        let far = far_bytes(TILES, size_of::<u16>() * self.tile_size());
        // SAFETY: the indices lie inside `rows` rows and TILES tiles of `steps` steps.
        unsafe {
            let mut sums = [[Avx512::splat(0.0); TILES]; COUNT];
            for step in 0..self.steps {
                let row = activations.as_ptr().add((step * place.rows + place.lane) * PAIRS);
                for pair in 0..PAIRS {
                    let mut pairs = [Avx512::splat(0.0); TILES];
                    for (n, pairs) in pairs.iter_mut().enumerate() {
                        let from = weights.as_ptr().add(n * self.tile_size());
                        let from = from.add((step * PAIRS + pair) * 2 * LANES);
                        if place.first + place.lane == 0 {
                            Avx512::prefetch(from.wrapping_byte_add(AHEAD_BYTES).cast());
                            Avx512::prefetch_far(from.wrapping_byte_add(far).cast());
                        }
                        *pairs = Avx512::load(from.cast());
                    }
                    for (m, sums) in sums.iter_mut().enumerate() {
                        let values = row.add(m * PAIRS + pair).cast::<f32>().read_unaligned();
                        let values = Avx512::splat(values);
                        for (sum, pairs) in sums.iter_mut().zip(pairs) {
                            *sum = sum.add_products(pairs, values);
                        }
                    }
                }
            }
            for (m, sums) in sums.into_iter().enumerate() {
                for (n, sum) in sums.into_iter().enumerate() {
                    let column = (place.tile + n) * LANES;
                    let columns = LANES.min(self.outputs - column);
                    let row = place.first + place.lane + m;
                    let to = self.to.slice(row * self.outputs + column, columns);
                    sum.store_first(to);
                }
            }
        }
        COUNT
    }
}

/// Dots of two bf16.
struct Bf16;

apart!(Bf16, "avx512f,avx512bf16");

/// A block of so many rows times `TILES` tiles.
struct At<'p, const TILES: usize> {
    product: &'p Product<'p>,
    place: BlockStart,
}

impl<const TILES: usize> Counted for At<'_, TILES> {
    const MOST: usize = ROWS;

    #[inline(always)]
    fn call<const COUNT: usize>(self) -> usize {
        self.product.dot::<TILES, COUNT>(self.place)
    }
}

/// Where a block starts: `tile`, and number `lane` of the `rows` rows of a group that starts at row `first`.
#[derive(Clone, Copy)]
struct BlockStart {
    tile: usize,
    first: usize,
    rows: usize,
    lane: usize,
}

#[cfg(test)]
mod tests {
    use super::super::Matrix;
    use super::super::matmul_tests::{buffer, noise, pack};
    use super::*;
    use crate::{Backend, StoredType};

    fn round(value: f32) -> f32 {
        half::bf16::from_f32(value).to_f32()
    }

    #[test]
    fn rows_are_close_to_exact_and_do_not_depend_on_the_batch_or_the_threads() {
        let available = Isa::available();
        for isa in available.into_iter().filter(|isa| isa.multiplies_bf16()) {
            for (inputs, outputs) in [(1, 1), (32, 5), (70, 33), (256, 48), (320, 500)] {
                let values = noise(inputs * outputs, 3);
                let weights: Matrix = pack(&values, inputs, StoredType::Bf16.into());
                let x = buffer(70, inputs);
                let mut cpu = Cpu::new(3).unwrap();
                cpu.isa = isa;
                let mut whole = Buffer::default();
                cpu.run(|| cpu.matmul(&x, &weights, &mut whole));
                for row in 0..x.rows() {
                    for (n, sum) in whole.row(row).iter().enumerate() {
                        let weights = &values[n * inputs..][..inputs];
                        let products = x.row(row).iter().zip(weights);
                        let products = products.map(|(x, w)| f64::from(round(*x) * round(*w)));
                        let (exact, size) = products.fold((0.0, 0.0), |(sum, size), product| {
                            (sum + product, size + product.abs())
                        });
                        // Products of bf16 are exact in f32; each of the sums rounds by 2⁻²⁴ of what it holds.
                        let bound = inputs as f64 * 2f64.powi(-24) * size + 1e-30;
                        let off = (f64::from(*sum) - exact).abs();
                        assert!(off <= bound, "{isa:?} {inputs}×{outputs}: {sum}, not {exact}");
                    }
                }
                cpu = Cpu::new(1).unwrap();
                cpu.isa = isa;
                for rows in (1..=21).chain([31, 32, 33, 47, 48, 49, 64, 65]) {
                    let part = Buffer { data: x.data[..rows * inputs].to_vec(), width: inputs };
                    let mut out = Buffer::default();
                    cpu.matmul(&part, &weights, &mut out);
                    assert!(
                        out.data.iter().zip(&whole.data).all(|(a, b)| a.to_bits() == b.to_bits()),
                        "{isa:?} {inputs}×{outputs}, {rows} rows"
                    );
                }
            }
        }
    }
}
