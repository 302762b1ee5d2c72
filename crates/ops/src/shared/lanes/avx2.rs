//! Sixteen lanes as two AVX2 registers.

use std::arch::x86_64::*;

use super::{Lanes, apart};

/// Two registers. Only code behind [`super::vectorised!`] makes values of it, after `Isa::detect` found the
/// instructions; that, and the callers' word for the pointers, is what every unsafe block here stands on.
#[derive(Clone, Copy)]
pub struct Avx2(pub(crate) __m256, pub(crate) __m256);

apart!(Avx2, "avx2,fma,f16c");

/// Operations on two values, an instruction for each half.
macro_rules! instructions {
    ($($name:ident: $instruction:ident)*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            unsafe { Avx2($instruction(self.0, other.0), $instruction(self.1, other.1)) }
        })*
    };
}

#[expect(clippy::undocumented_unsafe_blocks, reason = "the same for every block: see the type")]
impl Lanes for Avx2 {
    const TILES: usize = 1;
    const ROWS: usize = 4;

    #[inline(always)]
    fn prefetch(from: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T0>(from.cast()) }
    }
    #[inline(always)]
    fn prefetch_far(from: *const u8) {
        unsafe { _mm_prefetch::<_MM_HINT_T1>(from.cast()) }
    }
    #[inline(always)]
    fn splat(value: f32) -> Self {
        unsafe { Avx2(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Avx2(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> [Self; 2] {
        unsafe {
            let low = _mm256_loadu_si256(from.cast());
            let high = _mm256_loadu_si256(from.add(16).cast());
            let upper = _mm256_set1_epi32(-0x1_0000);
            [
                Avx2(
                    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)),
                    _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high)),
                ),
                Avx2(
                    _mm256_castsi256_ps(_mm256_and_si256(low, upper)),
                    _mm256_castsi256_ps(_mm256_and_si256(high, upper)),
                ),
            ]
        }
    }
    #[inline(always)]
    unsafe fn load_bf16_row(from: *const u16) -> Self {
        unsafe {
            let low = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast()));
            let high = _mm256_cvtepu16_epi32(_mm_loadu_si128(from.add(8).cast()));
            Avx2(
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(low)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<16>(high)),
            )
        }
    }
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        unsafe {
            Avx2(
                _mm256_cvtph_ps(_mm_loadu_si128(from.cast())),
                _mm256_cvtph_ps(_mm_loadu_si128(from.add(8).cast())),
            )
        }
    }
    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self {
        unsafe {
            let low = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast()));
            let high = _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.add(8).cast()));
            Avx2(_mm256_cvtepi32_ps(low), _mm256_cvtepi32_ps(high))
        }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
        }
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; 16] {
        unsafe {
            let mask = _mm256_set1_epi32(255);
            let low = _mm256_and_si256(_mm256_castps_si256(self.0), mask);
            let high = _mm256_and_si256(_mm256_castps_si256(self.1), mask);
            // Halves of both alternate after packing.
            let words = _mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packus_epi32(low, high));
            let (first, second) =
                (_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words));
            std::mem::transmute(_mm_packus_epi16(first, second))
        }
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_fmadd_ps(self.0, factor.0, addend.0),
                _mm256_fmadd_ps(self.1, factor.1, addend.1),
            )
        }
    }
    instructions! {
        add: _mm256_add_ps
        sub: _mm256_sub_ps
        mul: _mm256_mul_ps
        div: _mm256_div_ps
        max: _mm256_max_ps
        min: _mm256_min_ps
    }
    #[inline(always)]
    fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        unsafe { Avx2(_mm256_round_ps::<NEAREST>(self.0), _mm256_round_ps::<NEAREST>(self.1)) }
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        unsafe {
            let bias = _mm256_set1_epi32(127);
            let low = _mm256_add_epi32(_mm256_cvtps_epi32(self.0), bias);
            let high = _mm256_add_epi32(_mm256_cvtps_epi32(self.1), bias);
            Avx2(
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(low)),
                _mm256_castsi256_ps(_mm256_slli_epi32::<23>(high)),
            )
        }
    }
    #[inline(always)]
    fn zero_below(self, bound: Self, value: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(self.0, bound.0), value.0),
                _mm256_andnot_ps(_mm256_cmp_ps::<_CMP_LT_OQ>(self.1, bound.1), value.1),
            )
        }
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        unsafe {
            for half in [0, 8] {
                for column in (0..16).step_by(4) {
                    // Row n of `quads` holds rows n and n + 4 of four columns: loads do half of the turning.
                    let mut quads = [_mm256_setzero_ps(); 4];
                    for (row, quads) in quads.iter_mut().enumerate() {
                        let from = from.add((half + row) * from_stride + column);
                        *quads = _mm256_loadu2_m128(from.add(4 * from_stride), from);
                    }
                    let [a, b, c, d] = quads;
                    let (low, high) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
                    let (low2, high2) = (_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
                    let pairs = [(low, low2), (high, high2)];
                    for (n, (first, second)) in pairs.into_iter().enumerate() {
                        let first = _mm256_castps_pd(first);
                        let second = _mm256_castps_pd(second);
                        let lower = _mm256_castpd_ps(_mm256_unpacklo_pd(first, second));
                        let upper = _mm256_castpd_ps(_mm256_unpackhi_pd(first, second));
                        let to = to.add((column + 2 * n) * to_stride + half);
                        _mm256_storeu_ps(to, lower);
                        _mm256_storeu_ps(to.add(to_stride), upper);
                    }
                }
            }
        }
    }
}
