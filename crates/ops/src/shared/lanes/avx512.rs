//! Sixteen lanes as one AVX-512 register.

use std::arch::x86_64::*;

use std::mem::transmute;

use super::{LANES, Lanes, apart};

/// One register. Only code behind [`super::vectorised!`] makes values of it, after `Isa::detect` found the
/// instructions; that, and the callers' word for the pointers, is what every unsafe block here stands on.
#[derive(Clone, Copy)]
pub struct Avx512(pub(crate) __m512);

apart!(Avx512, "avx512f,avx2,fma,f16c");

/// Operations on two values, an instruction each.
macro_rules! instructions {
    ($($name:ident: $instruction:ident)*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            Avx512(unsafe { $instruction(self.0, other.0) })
        })*
    };
}

#[expect(clippy::undocumented_unsafe_blocks, reason = "the same for every block: see the type")]
impl Lanes for Avx512 {
    const TILES: usize = 2;
    const ROWS: usize = 12;

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
        Avx512(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Avx512(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> [Self; 2] {
        unsafe {
            let pairs = _mm512_loadu_si512(from.cast());
            let second = _mm512_and_si512(pairs, _mm512_set1_epi32(-0x1_0000));
            [
                Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(pairs))),
                Avx512(_mm512_castsi512_ps(second)),
            ]
        }
    }
    #[inline(always)]
    unsafe fn load_bf16_row(from: *const u16) -> Self {
        unsafe {
            let row = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(row)))
        }
    }
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        Avx512(unsafe { _mm512_cvtph_ps(_mm256_loadu_si256(from.cast())) })
    }
    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self {
        unsafe {
            let bytes = _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast()));
            Avx512(_mm512_cvtepi32_ps(bytes))
        }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; 16] {
        unsafe { std::mem::transmute(_mm512_cvtepi32_epi8(_mm512_castps_si512(self.0))) }
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Avx512(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }
    instructions! {
        add: _mm512_add_ps
        sub: _mm512_sub_ps
        mul: _mm512_mul_ps
        div: _mm512_div_ps
        max: _mm512_max_ps
        min: _mm512_min_ps
    }
    #[inline(always)]
    fn round(self) -> Self {
        Avx512(unsafe {
            _mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(self.0)
        })
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        unsafe {
            let biased = _mm512_add_epi32(_mm512_cvtps_epi32(self.0), _mm512_set1_epi32(127));
            Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<23>(biased)))
        }
    }
    #[inline(always)]
    fn zero_below(self, bound: Self, value: Self) -> Self {
        unsafe {
            let keep = !_mm512_cmp_ps_mask::<_CMP_LT_OQ>(self.0, bound.0);
            Avx512(_mm512_maskz_mov_ps(keep, value.0))
        }
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        unsafe {
            for column in (0..16).step_by(4) {
                // Row n of `quads` holds rows n, n + 4, n + 8, n + 12 of four columns: loads do half of the turning.
                let mut quads = [_mm512_setzero_ps(); 4];
                for (row, quads) in quads.iter_mut().enumerate() {
                    let from = from.add(row * from_stride + column);
                    let next = 4 * from_stride;
                    let second = _mm_loadu_ps(from.add(next));
                    let third = _mm_loadu_ps(from.add(2 * next));
                    let fourth = _mm_loadu_ps(from.add(3 * next));
                    *quads = _mm512_broadcast_f32x4(_mm_loadu_ps(from));
                    *quads = _mm512_mask_broadcast_f32x4(*quads, 0x00f0, second);
                    *quads = _mm512_mask_broadcast_f32x4(*quads, 0x0f00, third);
                    *quads = _mm512_mask_broadcast_f32x4(*quads, 0xf000, fourth);
                }
                let [a, b, c, d] = quads;
                let (low, high) = (_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
                let (low2, high2) = (_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
                let pairs = [(low, low2), (high, high2)];
                for (n, (first, second)) in pairs.into_iter().enumerate() {
                    let first = _mm512_castps_pd(first);
                    let second = _mm512_castps_pd(second);
                    let lower = _mm512_castpd_ps(_mm512_unpacklo_pd(first, second));
                    let upper = _mm512_castpd_ps(_mm512_unpackhi_pd(first, second));
                    let to = to.add((column + 2 * n) * to_stride);
                    _mm512_storeu_ps(to, lower);
                    _mm512_storeu_ps(to.add(to_stride), upper);
                }
            }
        }
    }
}

/// Pairs of bf16, of which each lane holds one: only where `Isa` found AVX-512 with bf16.
#[expect(clippy::undocumented_unsafe_blocks, reason = "the same for every block: see the type")]
impl Avx512 {
    /// `self` plus both products of each lane's pairs.
    #[inline(always)]
    pub fn add_products(self, a: Avx512, b: Avx512) -> Avx512 {
        unsafe {
            let a = transmute::<__m512, __m512bh>(a.0);
            let b = transmute::<__m512, __m512bh>(b.0);
            Avx512(_mm512_dpbf16_ps(self.0, a, b))
        }
    }
    /// Rounded to bf16, two numbers in the bits of one.
    #[inline(always)]
    pub fn to_pairs(self) -> [f32; LANES / 2] {
        unsafe { transmute::<__m256bh, [f32; LANES / 2]>(_mm512_cvtneps_pbh(self.0)) }
    }
    /// Sixteen bf16 at `first`, each before that at `second`, or before zeros.
    ///
    /// # Safety
    /// Both are readable for sixteen.
    #[inline(always)]
    pub unsafe fn pair(first: *const u16, second: Option<*const u16>) -> Avx512 {
        unsafe {
            let first = _mm512_cvtepu16_epi32(_mm256_loadu_si256(first.cast()));
            let Some(second) = second else { return Avx512(_mm512_castsi512_ps(first)) };
            let second = _mm512_cvtepu16_epi32(_mm256_loadu_si256(second.cast()));
            let second = _mm512_slli_epi32::<16>(second);
            Avx512(_mm512_castsi512_ps(_mm512_or_si512(first, second)))
        }
    }
}
