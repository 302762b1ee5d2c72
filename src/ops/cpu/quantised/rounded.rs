//! Rows of activations, rounded to bytes in blocks of 32, as the quantised kernels read them.

use super::super::lanes::{LANES, Lanes, vectorised};
use super::super::{Buffer, Cpu, Disjoint};
use super::BLOCK;

/// 32 activations of one row: `scale · value` each.
#[derive(Clone, Copy, Default)]
#[repr(C)]
pub struct Block {
    /// Four i8 a word, the first in the lowest byte.
    pub words: [i32; BLOCK / 4],
    pub scale: f32,
    /// −128 times the sum of the values, and `scale` times the sum.
    pub offset: i32,
    pub total: f32,
}

impl Cpu {
    /// The rows of `x`, `[rows][width / 32]` blocks; the last one of a row is padded with zeros.
    ///
    /// A block's scale is its largest magnitude over 127, its values are rounded to the nearest, ties to even: a
    /// row's blocks are a function of the row alone.
    pub(super) fn round(&self, x: &Buffer) -> Vec<Block> {
        let blocks = x.width.div_ceil(BLOCK);
        let mut rounded = vec![Block::default(); x.rows() * blocks];
        let to = Disjoint::new(&mut rounded);
        self.split(x.rows(), 2 * x.data.len(), |rows| {
            for row in rows {
                // SAFETY: each row is written by one thread alone.
                let to = unsafe { to.slice(row * blocks, blocks) };
                round_row(self.isa, x.row(row), to);
            }
        });
        rounded
    }
}

vectorised! {
    fn round_row(x: &[f32], to: &mut [Block]) = round_row_kernel
}

#[inline(always)]
fn round_row_kernel<L: Lanes>(x: &[f32], to: &mut [Block]) {
    let (blocks, rest) = x.as_chunks::<BLOCK>();
    let mut to = to.iter_mut();
    for (values, block) in blocks.iter().zip(&mut to) {
        *block = round_block::<L>(values);
    }
    if let Some(block) = to.next() {
        let mut last = [0.0; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        *block = round_block::<L>(&last);
    }
}

#[inline(always)]
fn round_block<L: Lanes>(values: &[f32; BLOCK]) -> Block {
    const MAGNITUDE: u32 = 0x7fff_ffff;
    // Magnitudes compare as integers; one that is no number is the largest, and shows in the scale.
    let mut largest = [0u32; LANES];
    for group in values.as_chunks::<LANES>().0 {
        for (largest, value) in largest.iter_mut().zip(group) {
            *largest = (*largest).max(value.to_bits() & MAGNITUDE);
        }
    }
    let largest = f32::from_bits(largest.into_iter().fold(0, u32::max));
    // Below that the inverse would overflow; so small a block is as good as zero.
    if largest < 1e-30 {
        return Block::default();
    }
    // 1.5 · 2²³: added to a small number, its last bits are the nearest whole number.
    const SHIFT: f32 = 12_582_912.0;
    let inverse = L::splat(127.0 / largest);
    let mut bytes = [0i8; BLOCK];
    for (bytes, group) in
        bytes.as_chunks_mut::<LANES>().0.iter_mut().zip(values.as_chunks::<LANES>().0)
    {
        let shifted = L::from_array(group).mul(inverse).add(L::splat(SHIFT));
        for (byte, value) in bytes.iter_mut().zip(shifted.to_array()) {
            *byte = value.to_bits() as i8;
        }
    }
    let mut block = Block { scale: largest / 127.0, ..Block::default() };
    for (word, four) in block.words.iter_mut().zip(bytes.as_chunks::<4>().0) {
        *word = i32::from_le_bytes(four.map(i8::cast_unsigned));
    }
    let sum: i32 = bytes.iter().map(|&byte| i32::from(byte)).sum();
    block.offset = -128 * sum;
    block.total = block.scale * sum as f32;
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
            round_row(isa, &x, &mut blocks);
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
    fn zeros_stay_zeros_and_what_is_no_number_shows() {
        let mut blocks = [Block::default(); 3];
        let mut x = [0.0; 3 * BLOCK];
        x[BLOCK] = f32::NAN;
        x[2 * BLOCK] = f32::INFINITY;
        round_row(Isa::detect(), &x, &mut blocks);
        assert_eq!((blocks[0].scale, blocks[0].offset), (0.0, 0));
        assert!(blocks[1].scale.is_nan());
        assert!(blocks[2].scale.is_infinite());
    }
}
