//! Sixteen dots as two AVX2 registers.

use std::arch::x86_64::*;

use super::Dots;
use crate::shared::lanes::{Avx2, apart};

/// Two registers. Only code behind [`super::dotted!`] makes values of it, after [`crate::shared::Isa`] found the
/// instructions; that, and the callers' word for the pointers, is what every unsafe block here stands on.
#[derive(Clone, Copy)]
pub struct Avx2Dots(__m256i, __m256i);

apart!(Avx2Dots, "avx2,fma,f16c");

/// The weights, and their magnitudes: `maddubs` multiplies unsigned by signed and saturates its sums of two at
/// 32,767, which two products of a magnitude and an activation of at most 127 each do not reach.
#[derive(Clone, Copy)]
pub struct Signed {
    pub(super) weights: (__m256i, __m256i),
    magnitudes: (__m256i, __m256i),
}

#[expect(clippy::undocumented_unsafe_blocks, reason = "the same for every block: see the type")]
impl Dots for Avx2Dots {
    type Floats = Avx2;
    type Weights = Signed;
    const ROWS: usize = 2;
    const ROWS_OF_TWO: usize = 1;
    const ROWS_OF_PANEL: usize = 2;
    const TILES_OF_PANEL: usize = 1;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Signed {
        unsafe {
            let offset = _mm256_set1_epi8(-128);
            let weights = (
                _mm256_xor_si256(_mm256_loadu_si256(from.cast()), offset),
                _mm256_xor_si256(_mm256_loadu_si256(from.add(32).cast()), offset),
            );
            Signed { weights, magnitudes: (_mm256_abs_epi8(weights.0), _mm256_abs_epi8(weights.1)) }
        }
    }
    #[inline(always)]
    unsafe fn load_nibbles(from: *const u8) -> [Signed; 2] {
        unsafe {
            let first = _mm256_loadu_si256(from.cast());
            let second = _mm256_loadu_si256(from.add(32).cast());
            let mask = _mm256_set1_epi8(15);
            let lower = (_mm256_and_si256(first, mask), _mm256_and_si256(second, mask));
            let upper = (
                _mm256_and_si256(_mm256_srli_epi16::<4>(first), mask),
                _mm256_and_si256(_mm256_srli_epi16::<4>(second), mask),
            );
            [
                Signed { weights: lower, magnitudes: lower },
                Signed { weights: upper, magnitudes: upper },
            ]
        }
    }
    #[inline(always)]
    fn zero() -> Self {
        unsafe { Avx2Dots(_mm256_setzero_si256(), _mm256_setzero_si256()) }
    }
    #[inline(always)]
    fn add(self, weights: Signed, activations: i32) -> Self {
        unsafe {
            let activations = _mm256_set1_epi32(activations);
            let ones = _mm256_set1_epi16(1);
            let first = _mm256_sign_epi8(activations, weights.weights.0);
            let second = _mm256_sign_epi8(activations, weights.weights.1);
            let first = _mm256_maddubs_epi16(weights.magnitudes.0, first);
            let second = _mm256_maddubs_epi16(weights.magnitudes.1, second);
            Avx2Dots(
                _mm256_add_epi32(self.0, _mm256_madd_epi16(first, ones)),
                _mm256_add_epi32(self.1, _mm256_madd_epi16(second, ones)),
            )
        }
    }
    #[inline(always)]
    fn to_floats(self) -> Avx2 {
        unsafe { Avx2(_mm256_cvtepi32_ps(self.0), _mm256_cvtepi32_ps(self.1)) }
    }
}
