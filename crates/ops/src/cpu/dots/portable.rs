//! Sixteen dots as an array.

use super::{Dots, STEP_BYTES};
use crate::shared::lanes::{Apart, Counted, LANES, Portable};

/// An array of sixteen; on AArch64 the compiler makes NEON of it.
#[derive(Clone, Copy)]
pub struct PortableDots([i32; LANES]);

impl Apart for PortableDots {
    fn apart<const COUNT: usize>(body: impl Counted) -> usize {
        Portable::apart::<COUNT>(body)
    }
}

impl Dots for PortableDots {
    type Floats = Portable;
    type Weights = [i8; STEP_BYTES];
    const ROWS: usize = 4;
    const ROWS_OF_TWO: usize = 1;
    const ROWS_OF_PANEL: usize = 2;
    const TILES_OF_PANEL: usize = 1;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> [i8; STEP_BYTES] {
        // SAFETY: the caller vouches for 64 readable bytes.
        let bytes = unsafe { from.cast::<[u8; STEP_BYTES]>().read() };
        bytes.map(|byte| (byte ^ 0x80).cast_signed())
    }
    #[inline(always)]
    unsafe fn load_nibbles(from: *const u8) -> [[i8; STEP_BYTES]; 2] {
        // SAFETY: the caller vouches for 64 readable bytes.
        let bytes = unsafe { from.cast::<[u8; STEP_BYTES]>().read() };
        [bytes.map(|byte| (byte & 15).cast_signed()), bytes.map(|byte| (byte >> 4).cast_signed())]
    }
    #[inline(always)]
    fn zero() -> Self {
        PortableDots([0; LANES])
    }
    #[inline(always)]
    fn add(self, weights: [i8; STEP_BYTES], activations: i32) -> Self {
        let activations = activations.to_le_bytes().map(u8::cast_signed);
        let mut sums = self.0;
        for (sum, weights) in sums.iter_mut().zip(weights.as_chunks::<4>().0) {
            for (weight, activation) in weights.iter().zip(activations) {
                *sum += i32::from(*weight) * i32::from(activation);
            }
        }
        PortableDots(sums)
    }
    #[inline(always)]
    fn to_floats(self) -> Portable {
        Portable(self.0.map(|sum| sum as f32))
    }
}
