//! Sixteen integer dots that are computed as they are, in the blocks of a machine's: a sum of integers has no order. What becomes of
//! them is a hash.

use std::marker::PhantomData;

use super::{Dots, PortableDots, STEP_BYTES};
use crate::cpu::lanes::{Portable, Symbolic, whole};

/// In the blocks of `D`, with numbers in blocks of so many tiles and rows.
#[derive(Clone, Copy)]
pub struct SymbolicDots<D, const TILES: usize, const ROWS: usize>(PortableDots, PhantomData<D>);

impl<D: Dots, const TILES: usize, const ROWS: usize> Dots for SymbolicDots<D, TILES, ROWS> {
    type Floats = Symbolic<TILES, ROWS>;
    type Weights = [i8; STEP_BYTES];
    const ROWS: usize = D::ROWS;
    const ROWS_OF_TWO: usize = D::ROWS_OF_TWO;
    const ROWS_OF_PANEL: usize = D::ROWS_OF_PANEL;
    const TILES_OF_PANEL: usize = D::TILES_OF_PANEL;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> [i8; STEP_BYTES] {
        // SAFETY: as the caller says.
        unsafe { PortableDots::load_bytes(from) }
    }
    #[inline(always)]
    unsafe fn load_nibbles(from: *const u8) -> [[i8; STEP_BYTES]; 2] {
        // SAFETY: as the caller says.
        unsafe { PortableDots::load_nibbles(from) }
    }
    #[inline(always)]
    fn zero() -> Self {
        SymbolicDots(PortableDots::zero(), PhantomData)
    }
    #[inline(never)]
    fn add(self, weights: [i8; STEP_BYTES], activations: i32) -> Self {
        SymbolicDots(self.0.add(weights, activations), PhantomData)
    }
    fn to_floats(self) -> Symbolic<TILES, ROWS> {
        Symbolic(Portable(self.0.0.map(whole)))
    }
}
