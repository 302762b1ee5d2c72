//! Sixteen integer dots that are computed as they are, in the blocks of a machine's: a sum of integers has no order. What becomes of
//! them is a hash.

use std::marker::PhantomData;

use super::{Dots, PortableDots};
use crate::cpu::lanes::{Portable, Symbolic, Whole, whole};

/// In the blocks of `D`, with numbers in blocks of so many tiles and rows.
#[derive(Clone, Copy)]
pub struct SymbolicDots<D, const TILES: usize, const ROWS: usize>(Whole, PhantomData<D>);

impl<D: Dots, const TILES: usize, const ROWS: usize> Dots for SymbolicDots<D, TILES, ROWS> {
    type Floats = Symbolic<TILES, ROWS>;
    type Weights = Whole;
    const ROWS: usize = D::ROWS;
    const ROWS_OF_TWO: usize = D::ROWS_OF_TWO;
    const ROWS_OF_PANEL: usize = D::ROWS_OF_PANEL;
    const TILES_OF_PANEL: usize = D::TILES_OF_PANEL;

    #[inline(never)]
    unsafe fn load_bytes(from: *const u8) -> Whole {
        // SAFETY: as the caller says.
        Whole::of(unsafe { PortableDots::load_bytes(from) })
    }
    #[inline(never)]
    unsafe fn load_nibbles(from: *const u8) -> [Whole; 2] {
        // SAFETY: as the caller says.
        unsafe { PortableDots::load_nibbles(from) }.map(Whole::of)
    }
    #[inline(never)]
    fn zero() -> Self {
        SymbolicDots(Whole::of(PortableDots::zero().0), PhantomData)
    }
    #[inline(never)]
    fn add(self, weights: Whole, activations: i32) -> Self {
        let sums = PortableDots(self.0.values()).add(weights.values(), activations);
        SymbolicDots(Whole::of(sums.0), PhantomData)
    }
    #[inline(never)]
    fn to_floats(self) -> Symbolic<TILES, ROWS> {
        Symbolic::of(Portable(self.0.values::<[i32; 16]>().map(whole)))
    }
}
