//! A number as weights, keys and values are kept.

use super::lanes::{LANES, Lanes};
use super::slab::Plain;

/// f32, or bf16 by its bits. Arithmetic is f32 in either case.
pub trait Kept: Plain {
    /// Numbers that lie beside each other, as many as fill 32 bits: inputs of an output, components of a key.
    const TOGETHER: usize = size_of::<f32>() / size_of::<Self>();
    /// A tile of weights holds a whole multiple of so many inputs, the last ones zeros.
    const MULTIPLE: usize;

    /// To the nearest, ties to even.
    fn keep(number: f32) -> Self;

    /// # Safety
    /// `from` must be readable for 16 numbers.
    unsafe fn load<L: Lanes>(from: *const Self) -> L;

    /// Sixteen numbers and their sixteen neighbours: these follow one by one, or lie `apart` from the first where nothing lies together.
    ///
    /// # Safety
    /// `from` must be readable for 16 pairs, or for 16 numbers here and there.
    unsafe fn load_pair<L: Lanes>(from: *const Self, apart: usize) -> [L; 2];

    /// Where the first `inputs` inputs of a tile lie as f32, sixteen columns an input: where they are, or in `room`.
    fn widen<L: Lanes>(tile: &[Self], inputs: usize, room: &mut [f32]) -> *const f32;
}

impl Kept for f32 {
    const MULTIPLE: usize = 1;

    #[inline(always)]
    fn keep(number: f32) -> f32 {
        number
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32) -> L {
        // SAFETY: the caller vouches for it.
        unsafe { L::load(from) }
    }

    #[inline(always)]
    unsafe fn load_pair<L: Lanes>(from: *const f32, apart: usize) -> [L; 2] {
        // SAFETY: the caller vouches for both.
        unsafe { [L::load(from), L::load(from.add(apart))] }
    }

    #[inline(always)]
    fn widen<L: Lanes>(tile: &[f32], inputs: usize, _room: &mut [f32]) -> *const f32 {
        tile[..inputs * LANES].as_ptr()
    }
}

impl Kept for u16 {
    const MULTIPLE: usize = 32;

    #[inline(always)]
    fn keep(number: f32) -> u16 {
        half::bf16::from_f32(number).to_bits()
    }

    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16) -> L {
        // SAFETY: the caller vouches for it.
        unsafe { L::load_bf16_row(from) }
    }

    #[inline(always)]
    unsafe fn load_pair<L: Lanes>(from: *const u16, _apart: usize) -> [L; 2] {
        // SAFETY: the caller vouches for sixteen pairs.
        unsafe { L::load_bf16(from) }
    }

    #[inline(always)]
    fn widen<L: Lanes>(tile: &[u16], inputs: usize, room: &mut [f32]) -> *const f32 {
        // A tile holds whole pairs.
        let inputs = inputs.next_multiple_of(2);
        let (tile, room) = (&tile[..inputs * LANES], &mut room[..inputs * LANES]);
        for at in (0..inputs * LANES).step_by(2 * LANES) {
            // SAFETY: both hold the pair that begins here, as sliced above.
            unsafe {
                let [first, second] = L::load_bf16(tile.as_ptr().add(at));
                first.store(room.as_mut_ptr().add(at));
                second.store(room.as_mut_ptr().add(at + LANES));
            }
        }
        room.as_ptr()
    }
}
