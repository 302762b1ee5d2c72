//! Sixteen dots as two registers of 256 bits with VNNI.

use std::arch::x86_64::*;

use super::{Avx2Dots, Dots};
use crate::shared::lanes::{Avx2, apart};

/// Two registers. Only code behind [`super::dotted!`] makes values of it, after [`crate::shared::Isa`] found the
/// instructions; that, and the callers' word for the pointers, is what every unsafe block here stands on.
#[derive(Clone, Copy)]
pub struct AvxVnniDots(__m256i, __m256i);

apart!(AvxVnniDots, "avxvnni,avx2,fma,f16c");

#[expect(clippy::undocumented_unsafe_blocks, reason = "the same for every block: see the type")]
impl Dots for AvxVnniDots {
    type Floats = Avx2;
    type Weights = (__m256i, __m256i);
    const ROWS: usize = 3;
    const ROWS_OF_TWO: usize = 1;
    const ROWS_OF_PANEL: usize = 6;
    const TILES_OF_PANEL: usize = 1;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Weights {
        unsafe { (_mm256_loadu_si256(from.cast()), _mm256_loadu_si256(from.add(32).cast())) }
    }
    #[inline(always)]
    unsafe fn load_nibbles(from: *const u8) -> [Self::Weights; 2] {
        unsafe {
            let [lower, upper] = Avx2Dots::load_nibbles(from);
            [lower.weights, upper.weights]
        }
    }
    #[inline(always)]
    fn zero() -> Self {
        unsafe { AvxVnniDots(_mm256_setzero_si256(), _mm256_setzero_si256()) }
    }
    #[inline(always)]
    fn before_bytes(offset: i32) -> Self {
        let start = unsafe { _mm256_set1_epi32(offset) };
        AvxVnniDots(start, start)
    }
    #[inline(always)]
    fn add(self, weights: Self::Weights, activations: i32) -> Self {
        unsafe {
            let activations = _mm256_set1_epi32(activations);
            AvxVnniDots(
                _mm256_dpbusd_avx_epi32(self.0, weights.0, activations),
                _mm256_dpbusd_avx_epi32(self.1, weights.1, activations),
            )
        }
    }
    #[inline(always)]
    fn to_floats(self) -> Avx2 {
        unsafe { Avx2(_mm256_cvtepi32_ps(self.0), _mm256_cvtepi32_ps(self.1)) }
    }
}
