//! Sixteen pairs of bf16.

use super::{LANES, Lanes};

/// Lanes of machines that multiply pairs of bf16, of which each holds one.
pub trait PairLanes: Lanes {
    /// `self` plus both products of each lane's pairs.
    fn add_products(self, a: Self, b: Self) -> Self;
    /// Rounded to bf16, two numbers in the bits of one.
    fn to_pairs(self) -> [f32; LANES / 2];
    /// Sixteen bf16 at `first`, each before that at `second`, or before zeros.
    ///
    /// # Safety
    /// Both are readable for sixteen.
    unsafe fn pair(first: *const u16, second: Option<*const u16>) -> Self;
}
