//! Sixteen dots as one AVX-512 register.

use std::arch::x86_64::*;

use super::Dots;
use crate::shared::lanes::{Avx512, apart};

/// One register. Only code behind [`super::dotted!`] makes values of it, after [`crate::shared::Isa`] found the
/// instructions; that, and the callers' word for the pointers, is what every unsafe block here stands on.
#[derive(Clone, Copy)]
pub struct Avx512Dots(__m512i);

apart!(Avx512Dots, "avx512f,avx512bw,avx512vnni,avx2,fma,f16c");

#[expect(clippy::undocumented_unsafe_blocks, reason = "the same for every block: see the type")]
impl Dots for Avx512Dots {
    type Floats = Avx512;
    type Weights = __m512i;
    const ROWS: usize = 12;
    const ROWS_OF_TWO: usize = 6;
    const ROWS_OF_PANEL: usize = 8;
    const TILES_OF_PANEL: usize = 2;

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> __m512i {
        unsafe { _mm512_loadu_si512(from.cast()) }
    }
    #[inline(always)]
    unsafe fn load_nibbles(from: *const u8) -> [__m512i; 2] {
        unsafe {
            let both = _mm512_loadu_si512(from.cast());
            let mask = _mm512_set1_epi8(15);
            [_mm512_and_si512(both, mask), _mm512_and_si512(_mm512_srli_epi16::<4>(both), mask)]
        }
    }
    #[inline(always)]
    fn zero() -> Self {
        Avx512Dots(unsafe { _mm512_setzero_si512() })
    }
    #[inline(always)]
    fn before_bytes(offset: i32) -> Self {
        Avx512Dots(unsafe { _mm512_set1_epi32(offset) })
    }
    #[inline(always)]
    fn add(self, weights: __m512i, activations: i32) -> Self {
        Avx512Dots(unsafe { _mm512_dpbusd_epi32(self.0, weights, _mm512_set1_epi32(activations)) })
    }
    #[inline(always)]
    fn to_floats(self) -> Avx512 {
        Avx512(unsafe { _mm512_cvtepi32_ps(self.0) })
    }
}
