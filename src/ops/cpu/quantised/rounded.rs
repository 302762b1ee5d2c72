//! Rows of activations, rounded to bytes in blocks of 32, as the quantised kernels read them.

use super::super::lanes::{LANES, Lanes, by_halves, vectorised};
use super::super::{Buffer, Cpu, Disjoint};
use super::BLOCK;
use super::panels::{self, Panel};

/// 32 activations of one row: `scale · value` each.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Block {
    /// Four i8 a word, the first in the lowest byte.
    pub words: [i32; BLOCK / 4],
    pub scale: f32,
    /// −128 times the sum of the values: of all blocks that share the scale in the first of them, zero in the others.
    pub offset: i32,
    /// `scale` times the sum of the values.
    pub total: f32,
}

impl Cpu {
    /// The rows of `x`, `[rows][width / 32]` blocks; the last one of a row is padded with zeros.
    ///
    /// The scale of `group` blocks is their largest magnitude over 127, values are rounded to the nearest, ties to even: a
    /// row's blocks are a function of the row alone.
    pub(super) fn round(&self, x: &Buffer, group: usize) -> Vec<Block> {
        let blocks = x.width.div_ceil(BLOCK);
        let mut rounded = vec![Block::default(); x.rows() * blocks];
        let to = Disjoint::new(&mut rounded);
        self.split(x.rows(), 2 * x.data.len(), |rows| {
            for row in rows {
                // SAFETY: each row is written by one thread alone.
                let to = unsafe { to.slice(row * blocks, blocks) };
                round_row(self.isa, x.row(row), to, group);
            }
        });
        rounded
    }

    /// The same as panels, in `rounded`: `[width / 512][rows / 6][16]`.
    pub(super) fn round_to_panels(&self, x: &Buffer, group: usize, rounded: &mut Vec<Panel>) {
        let blocks = x.width.div_ceil(BLOCK);
        let count = x.rows().div_ceil(panels::ROWS);
        rounded.resize(count * blocks.next_multiple_of(panels::PART), Panel::default());
        let to = Disjoint::new(rounded);
        self.split(count, 2 * x.data.len(), |panels| {
            let mut row_blocks = vec![Block::default(); blocks];
            for panel in panels {
                for place in 0..panels::ROWS {
                    let row = panel * panels::ROWS + place;
                    if row < x.rows() {
                        round_row(self.isa, x.row(row), &mut row_blocks, group);
                    } else {
                        row_blocks.fill(Block::default());
                    }
                    for (part, blocks) in row_blocks.chunks(panels::PART).enumerate() {
                        let first = (part * count + panel) * panels::PART;
                        // SAFETY: each panel is written by one thread alone.
                        let to = unsafe { to.slice(first, blocks.len()) };
                        for (to, block) in to.iter_mut().zip(blocks) {
                            to.set(place, block);
                        }
                    }
                }
            }
        });
    }
}

vectorised! {
    fn round_row(x: &[f32], to: &mut [Block], group: usize) = round_row_kernel
}

#[inline(always)]
fn round_row_kernel<L: Lanes>(x: &[f32], to: &mut [Block], group: usize) {
    for (values, to) in x.chunks(group * BLOCK).zip(to.chunks_mut(group)) {
        let (blocks, rest) = values.as_chunks::<BLOCK>();
        let mut last = [0.0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        let blocks = blocks.iter().chain((!rest.is_empty()).then_some(&last));
        let mut largest = [0; LANES];
        for block in blocks.clone() {
            add_magnitudes(block, &mut largest);
        }
        let largest = f32::from_bits(by_halves(largest, u32::max));
        for (block, to) in blocks.zip(&mut *to) {
            *to = round_block::<L>(block, largest);
        }
        if let Some((first, others)) = to.split_first_mut() {
            for other in others {
                first.offset += std::mem::take(&mut other.offset);
            }
        }
    }
}

/// Magnitudes compare as integers; one that is no number is the largest, and shows in the scale.
#[inline(always)]
fn add_magnitudes(values: &[f32; BLOCK], largest: &mut [u32; LANES]) {
    const MAGNITUDE: u32 = 0x7fff_ffff;
    for group in values.as_chunks::<LANES>().0 {
        for (largest, value) in largest.iter_mut().zip(group) {
            *largest = (*largest).max(value.to_bits() & MAGNITUDE);
        }
    }
}

#[inline(always)]
fn round_block<L: Lanes>(values: &[f32; BLOCK], largest: f32) -> Block {
    // Below that the inverse would overflow; so small a block is as good as zero.
    if largest < 1e-30 {
        return Block::default();
    }
    // 1.5 · 2²³: added to a small number, its last bits are the nearest whole number.
    const SHIFT: f32 = 12_582_912.0;
    let inverse = L::splat(127.0 / largest);
    let mut block = Block { scale: largest / 127.0, ..Block::default() };
    let mut sums = L::splat(0.0);
    let words = block.words.as_chunks_mut::<{ LANES / 4 }>().0;
    for (words, group) in words.iter_mut().zip(values.as_chunks::<LANES>().0) {
        let shifted = L::from_array(group).mul(inverse).add(L::splat(SHIFT));
        sums = sums.add(shifted.sub(L::splat(SHIFT)));
        for (word, four) in words.iter_mut().zip(shifted.low_bytes().as_chunks::<4>().0) {
            *word = i32::from_le_bytes(*four);
        }
    }
    // Whole numbers below 2¹⁶: exact in any order.
    let sum = sums.sum();
    block.offset = -128 * sum as i32;
    block.total = block.scale * sum;
    block
}

#[cfg(test)]
mod tests {
    use super::super::super::Isa;
    use super::*;

    fn bytes(block: &Block) -> Vec<i8> {
        let words = block.words.iter();
        words.flat_map(|word| word.to_le_bytes().map(u8::cast_signed)).collect()
    }

    #[test]
    fn equals_the_formula_and_itself_on_every_instruction_set() {
        let x: Vec<f32> = (0..75).map(|i| (i as f32 * 1.7).sin() * 3.0).collect();
        for isa in Isa::available() {
            let mut blocks = [Block::default(); 3];
            round_row(isa, &x, &mut blocks, 1);
            for (block, x) in blocks.iter().zip(x.chunks(BLOCK)) {
                let largest = x.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                assert_eq!(block.scale, largest / 127.0);
                let bytes = bytes(block);
                for (byte, x) in bytes.iter().zip(x) {
                    assert_eq!(f32::from(*byte), (x * (127.0 / largest)).round_ties_even());
                }
                assert!(bytes[x.len()..].iter().all(|&byte| byte == 0));
                let sum = bytes.iter().map(|&byte| i32::from(byte)).sum::<i32>();
                assert_eq!(block.offset, -128 * sum);
                assert_eq!(block.total, block.scale * sum as f32);
            }
        }
    }

    #[test]
    fn blocks_of_a_group_share_the_largest_magnitude_and_the_first_keeps_their_offset() {
        let x: Vec<f32> = (0..170).map(|i| (i as f32 * 1.7).sin() * i as f32).collect();
        for isa in Isa::available() {
            let mut blocks = [Block::default(); 6];
            round_row(isa, &x, &mut blocks, 4);
            for (blocks, x) in blocks.chunks(4).zip(x.chunks(4 * BLOCK)) {
                let largest = x.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                let values: Vec<i8> = blocks.iter().flat_map(bytes).collect();
                for (byte, x) in values.iter().zip(x) {
                    assert_eq!(f32::from(*byte), (x * (127.0 / largest)).round_ties_even());
                }
                let sum = values.iter().map(|&byte| i32::from(byte)).sum::<i32>();
                assert_eq!(blocks[0].offset, -128 * sum);
                assert!(blocks[1..].iter().all(|block| block.offset == 0));
                assert!(blocks.iter().all(|block| block.scale == largest / 127.0));
            }
        }
    }

    #[test]
    fn zeros_stay_zeros_and_what_is_no_number_shows() {
        let mut blocks = [Block::default(); 3];
        let mut x = [0.0; 3 * BLOCK];
        x[BLOCK] = f32::NAN;
        x[2 * BLOCK] = f32::INFINITY;
        round_row(Isa::detect(), &x, &mut blocks, 1);
        assert_eq!((blocks[0].scale, blocks[0].offset), (0.0, 0));
        assert!(blocks[1].scale.is_nan());
        assert!(blocks[2].scale.is_infinite());
    }
}
