//! Rows of activations, rounded to bytes in blocks of 32, as the quantised kernels read them.

use super::super::lanes::{LANES, Lanes, by_halves, vectorised};
use super::super::{Buffer, Cpu, Disjoint, Isa};
use super::BLOCK;
use super::panels::{self, Panel};

/// 32 activations of each of some rows, side by side as the kernels read them: `scale · value` each.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Block<const ROWS: usize> {
    /// Four i8 a word, the first in the lowest byte.
    pub words: [[i32; ROWS]; BLOCK / 4],
    pub scales: [f32; ROWS],
    /// −128 times the sum of a row's values: of all blocks that share the scale in the first of them, zero in the others.
    pub offsets: [i32; ROWS],
    /// The scale times that sum, likewise.
    pub totals: [f32; ROWS],
}

impl<const ROWS: usize> Block<ROWS> {
    pub const ZERO: Block<ROWS> = Block {
        words: [[0; ROWS]; BLOCK / 4],
        scales: [0.0; ROWS],
        offsets: [0; ROWS],
        totals: [0.0; ROWS],
    };
}

/// Bytes between the activations that are rounded and those that are asked for: rows of a prompt lie in the last-level cache.
const AHEAD: usize = 2048;

/// Numbers of a row in a block, of four bytes each.
const NUMBERS: usize = size_of::<Block<1>>() / 4;

/// The blocks of the `ROWS` rows from `row` on, which share a group of what [`Cpu::round`] gave.
///
/// # Safety
/// There is such a group.
#[inline(always)]
pub unsafe fn group_of<const ROWS: usize>(
    rounded: &[u32],
    row: usize,
    blocks: usize,
) -> &[Block<ROWS>] {
    let group = &rounded[row * blocks * NUMBERS..][..ROWS * blocks * NUMBERS];
    // SAFETY: a block is so many numbers, each as good as any other.
    unsafe { std::slice::from_raw_parts(group.as_ptr().cast(), blocks) }
}

/// Where a row's blocks are written, among those of its group.
#[derive(Clone, Copy)]
struct Column {
    /// The row's first number.
    first: *mut u32,
    /// Rows of the group.
    rows: usize,
}

impl Column {
    /// # Safety
    /// The row's numbers of block `block` are there, and nobody else's.
    #[inline(always)]
    unsafe fn write(
        self,
        block: usize,
        words: &[i32; BLOCK / 4],
        [scale, offset, total]: [u32; 3],
    ) {
        // SAFETY: the caller vouches for it.
        unsafe {
            let mut to = self.first.add(block * NUMBERS * self.rows);
            for word in words {
                to.write(word.cast_unsigned());
                to = to.add(self.rows);
            }
            for number in [scale, offset, total] {
                to.write(number);
                to = to.add(self.rows);
            }
        }
    }
}

impl Cpu {
    /// The rows of `x` in `rounded`, groups of `together` rows and the last of fewer, each `[width / 32]` blocks of its rows;
    /// the last block is padded with zeros.
    ///
    /// The scale of `shared` blocks, one or four, is their largest magnitude over 127, values are rounded to the nearest, ties
    /// to even: what a row becomes is a function of the row alone.
    pub(super) fn round(&self, x: &Buffer, shared: usize, together: usize, rounded: &mut Vec<u32>) {
        let blocks = x.width.div_ceil(BLOCK);
        rounded.resize(x.rows() * blocks * NUMBERS, 0);
        let to = Disjoint::new(rounded);
        self.split(x.rows(), 2 * x.data.len(), |rows| {
            for row in rows {
                let start = row / together * together;
                let first = to.at(start * blocks * NUMBERS + row - start);
                let column = Column { first, rows: together.min(x.rows() - start) };
                // SAFETY: each row is written by one thread alone.
                unsafe { round_row(self.isa, x.row(row), shared, column) };
            }
        });
    }

    /// The same, four blocks under a scale, as panels `[width / 512][rows / rows of a panel][16]`. Rows that the last panel
    /// lacks keep what was there.
    pub(super) fn round_to_panels(
        &self,
        x: &Buffer,
        rows_of_panel: usize,
        rounded: &mut Vec<Panel>,
    ) {
        let blocks = x.width.div_ceil(BLOCK);
        let count = x.rows().div_ceil(rows_of_panel);
        rounded.resize(count * blocks.next_multiple_of(panels::PART), Panel::ZERO);
        let to = Disjoint::new(rounded);
        self.split(count, 2 * x.data.len(), |panels| {
            for panel in panels {
                let first = panel * rows_of_panel;
                for row in first..x.rows().min(first + rows_of_panel) {
                    for (part, values) in x.row(row).chunks(panels::PART * BLOCK).enumerate() {
                        let panel = to.at((part * count + panel) * panels::PART).cast::<u32>();
                        let column =
                            Column { first: panel.wrapping_add(row - first), rows: panels::ROWS };
                        // SAFETY: each panel is written by one thread alone.
                        unsafe { round_row(self.isa, values, 4, column) };
                    }
                }
            }
        });
    }
}

/// # Safety
/// `to` has room for all values of `x`, whole blocks of them.
unsafe fn round_row(isa: Isa, x: &[f32], shared: usize, to: Column) {
    match shared {
        1 => round_row_by_one(isa, x, to),
        _ => round_row_by_four(isa, x, to),
    }
}

vectorised! {
    fn round_row_by_one(x: &[f32], to: Column) = round_row_kernel<1>
}

vectorised! {
    fn round_row_by_four(x: &[f32], to: Column) = round_row_kernel<4>
}

#[inline(always)]
fn round_row_kernel<L: Lanes, const SHARED: usize>(x: &[f32], to: Column) {
    for (n, values) in x.chunks(SHARED * BLOCK).enumerate() {
        let ahead = values.as_ptr().cast::<u8>().wrapping_add(AHEAD);
        for line in 0..SHARED * BLOCK * size_of::<f32>() / 64 {
            L::prefetch(ahead.wrapping_add(line * 64));
        }
        let group = Group::<SHARED>::round::<L>(values);
        for (block, words) in group.words.iter().enumerate().take(values.len().div_ceil(BLOCK)) {
            let sum = if block == 0 { group.sum } else { 0 };
            let offset = (-128 * sum).cast_unsigned();
            let total = (group.scale * sum as f32).to_bits();
            // SAFETY: the caller of `round_row` vouches for the room.
            unsafe { to.write(n * SHARED + block, words, [group.scale.to_bits(), offset, total]) };
        }
    }
}

/// Blocks of one row that share a scale.
struct Group<const BLOCKS: usize> {
    words: [[i32; BLOCK / 4]; BLOCKS],
    scale: f32,
    /// Of all values.
    sum: i32,
}

impl<const BLOCKS: usize> Group<BLOCKS> {
    /// As many values as there are, zeros after them.
    #[inline(always)]
    fn round<L: Lanes>(values: &[f32]) -> Group<BLOCKS> {
        if values.len() == BLOCKS * BLOCK {
            return Group::round_whole::<L>(values);
        }
        let mut padded = [[0.0; BLOCK]; BLOCKS];
        padded.as_flattened_mut()[..values.len()].copy_from_slice(values);
        Group::round_whole::<L>(padded.as_flattened())
    }

    #[inline(always)]
    fn round_whole<L: Lanes>(values: &[f32]) -> Group<BLOCKS> {
        // 1.5 · 2²³: added to a small number, its last bits are the nearest whole number.
        const SHIFT: f32 = 12_582_912.0;
        let mut group = Group { words: [[0; BLOCK / 4]; BLOCKS], scale: 0.0, sum: 0 };
        let values = values.as_chunks::<LANES>().0;
        let largest = largest_magnitude(values);
        // Below that the inverse would overflow; so small a group is as good as zero.
        if largest < 1e-30 {
            return group;
        }
        group.scale = largest / 127.0;
        let inverse = L::splat(127.0 / largest);
        let mut sums = L::splat(0.0);
        let words = group.words.as_flattened_mut().as_chunks_mut::<{ LANES / 4 }>().0;
        for (words, values) in words.iter_mut().zip(values) {
            let shifted = L::from_array(values).mul(inverse).add(L::splat(SHIFT));
            sums = sums.add(shifted.sub(L::splat(SHIFT)));
            for (word, four) in words.iter_mut().zip(shifted.low_bytes().as_chunks::<4>().0) {
                *word = i32::from_le_bytes(*four);
            }
        }
        // Whole numbers below 2¹⁶: exact in any order.
        group.sum = sums.sum() as i32;
        group
    }
}

/// Magnitudes compare as integers; one that is no number is the largest, and shows in the scale.
#[inline(always)]
fn largest_magnitude(values: &[[f32; LANES]]) -> f32 {
    const MAGNITUDE: u32 = 0x7fff_ffff;
    let mut largest = [0; LANES];
    for values in values {
        for (largest, value) in largest.iter_mut().zip(values) {
            *largest = (*largest).max(value.to_bits() & MAGNITUDE);
        }
    }
    f32::from_bits(by_halves(largest, u32::max))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `x` as a group of its own.
    fn round<const COUNT: usize>(isa: Isa, x: &[f32], shared: usize) -> [Block<1>; COUNT] {
        let mut blocks = [Block::ZERO; COUNT];
        // SAFETY: there are blocks for all of it.
        unsafe { round_row(isa, x, shared, Column { first: blocks.as_mut_ptr().cast(), rows: 1 }) };
        blocks
    }

    fn bytes(block: &Block<1>) -> Vec<i8> {
        let words = block.words.as_flattened().iter();
        words.flat_map(|word| word.to_le_bytes().map(u8::cast_signed)).collect()
    }

    #[test]
    fn equals_the_formula_and_itself_on_every_instruction_set() {
        let x: Vec<f32> = (0..75).map(|i| (i as f32 * 1.7).sin() * 3.0).collect();
        for isa in Isa::available() {
            let blocks = round::<3>(isa, &x, 1);
            for (block, x) in blocks.iter().zip(x.chunks(BLOCK)) {
                let largest = x.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                assert_eq!(block.scales[0], largest / 127.0);
                let bytes = bytes(block);
                for (byte, x) in bytes.iter().zip(x) {
                    assert_eq!(f32::from(*byte), (x * (127.0 / largest)).round_ties_even());
                }
                assert!(bytes[x.len()..].iter().all(|&byte| byte == 0));
                let sum = bytes.iter().map(|&byte| i32::from(byte)).sum::<i32>();
                assert_eq!(block.offsets, [-128 * sum]);
                assert_eq!(block.totals, [block.scales[0] * sum as f32]);
            }
        }
    }

    #[test]
    fn blocks_of_a_group_share_the_largest_magnitude_and_the_first_keeps_their_offset() {
        let x: Vec<f32> = (0..170).map(|i| (i as f32 * 1.7).sin() * i as f32).collect();
        for isa in Isa::available() {
            let blocks = round::<6>(isa, &x, 4);
            for (blocks, x) in blocks.chunks(4).zip(x.chunks(4 * BLOCK)) {
                let largest = x.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                let values: Vec<i8> = blocks.iter().flat_map(bytes).collect();
                for (byte, x) in values.iter().zip(x) {
                    assert_eq!(f32::from(*byte), (x * (127.0 / largest)).round_ties_even());
                }
                let sum = values.iter().map(|&byte| i32::from(byte)).sum::<i32>();
                assert_eq!(blocks[0].offsets[0], -128 * sum);
                assert!(blocks[1..].iter().all(|block| block.offsets == [0]));
                assert!(blocks.iter().all(|block| block.scales[0] == largest / 127.0));
            }
        }
    }

    #[test]
    fn zeros_stay_zeros_and_what_is_no_number_shows() {
        let mut x = [0.0; 3 * BLOCK];
        x[BLOCK] = f32::NAN;
        x[2 * BLOCK] = f32::INFINITY;
        let blocks = round::<3>(Isa::detect(), &x, 1);
        assert_eq!((blocks[0].scales, blocks[0].offsets), ([0.0], [0]));
        assert!(blocks[1].scales[0].is_nan());
        assert!(blocks[2].scales[0].is_infinite());
    }
}
