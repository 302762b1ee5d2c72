//! Sixteen f32 lanes, the unit of every CPU kernel: as one AVX-512 register, two AVX2 registers, or an array.
//!
//! Each method rounds once and the same way on every instruction set, so a kernel written over lanes gives
//! the same bits on all of them.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Lanes in a vector.
pub const LANES: usize = 16;

/// The instruction set that kernels run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    Avx512,
    Avx2,
    Portable,
}

impl Isa {
    /// The widest one that this machine has.
    pub fn detect() -> Isa {
        #[cfg(target_arch = "x86_64")]
        {
            if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
                return Isa::Avx512;
            }
            if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
                return Isa::Avx2;
            }
        }
        Isa::Portable
    }

    pub fn name(self) -> &'static str {
        match self {
            Isa::Avx512 => "avx512",
            Isa::Avx2 => "avx2",
            Isa::Portable => "portable",
        }
    }
}

/// Sixteen f32 values. The pointers given to `load` and `store` must be valid for sixteen values (of any alignment).
pub trait Lanes: Copy {
    fn splat(value: f32) -> Self;
    /// # Safety
    /// `from` must be readable for 16 values.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `from` must be readable for 16 values. Each is the upper half of an f32.
    unsafe fn load_bf16(from: *const u16) -> Self;
    /// # Safety
    /// `to` must be writable for 16 values.
    unsafe fn store(self, to: *mut f32);
    /// `self · factor + addend`, rounded once.
    fn fma(self, factor: Self, addend: Self) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    /// To the nearest whole number, ties to even.
    fn round(self) -> Self;
    /// 2^self for whole numbers from −126 to 127.
    fn power_of_two(self) -> Self;
    /// 0 in the lanes where `self < bound`, `value` elsewhere.
    fn zero_below(self, bound: Self, value: Self) -> Self;

    #[inline(always)]
    fn to_array(self) -> [f32; LANES] {
        let mut array = [0.0; LANES];
        // SAFETY: the array holds sixteen values.
        unsafe { self.store(array.as_mut_ptr()) };
        array
    }

    #[inline(always)]
    fn from_array(array: &[f32; LANES]) -> Self {
        // SAFETY: the array holds sixteen values.
        unsafe { Self::load(array.as_ptr()) }
    }

    /// The sum over the lanes, as a tree of fixed shape: 8 + 8, 4 + 4, 2 + 2, 1 + 1.
    #[inline(always)]
    fn sum(self) -> f32 {
        let mut array = self.to_array();
        let mut width = LANES / 2;
        while width > 0 {
            for lane in 0..width {
                array[lane] += array[lane + width];
            }
            width /= 2;
        }
        array[0]
    }

    /// The largest lane.
    #[inline(always)]
    fn maximum(self) -> f32 {
        self.to_array()
            .into_iter()
            .fold(f32::NEG_INFINITY, f32::max)
    }
}

/// eˣ to about one unit in the last place; 0 below −87.3, where f32 leaves its normal range.
///
/// Our own, because the C library's changes with its version and the CPU.
#[inline(always)]
pub fn exp<L: Lanes>(x: L) -> L {
    const LOWEST: f32 = -87.336_54;
    const HIGHEST: f32 = 88.0;
    // ln 2 in two parts, the first with trailing zeros so that n · LN2_HIGH is exact.
    const LN2_HIGH: f32 = 0.693_359_4;
    const LN2_LOW: f32 = -2.121_944_4e-4;
    // eʳ on |r| ≤ ln 2 / 2: the Taylor series to r⁷, whose remainder is below 2⁻²⁷.
    const COEFFICIENTS: [f32; 6] = [
        1.0 / 5040.0,
        1.0 / 720.0,
        1.0 / 120.0,
        1.0 / 24.0,
        1.0 / 6.0,
        0.5,
    ];
    let bounded = x.max(L::splat(LOWEST)).min(L::splat(HIGHEST));
    let whole = bounded.mul(L::splat(std::f32::consts::LOG2_E)).round();
    let rest = whole.fma(L::splat(-LN2_HIGH), bounded);
    let rest = whole.fma(L::splat(-LN2_LOW), rest);
    let mut series = L::splat(COEFFICIENTS[0]);
    for coefficient in &COEFFICIENTS[1..] {
        series = series.fma(rest, L::splat(*coefficient));
    }
    let series = series.fma(rest.mul(rest), rest).add(L::splat(1.0));
    x.zero_below(L::splat(LOWEST), series.mul(whole.power_of_two()))
}

/// eˣ of one number, by the same steps as in a kernel.
pub fn exp_scalar(x: f32) -> f32 {
    exp(Portable([x; LANES])).0[0]
}

/// A number as weights keep it.
pub trait Stored: Copy + Sync {
    /// Sixteen of them, widened.
    ///
    /// # Safety
    /// `from` must be readable for 16 values.
    unsafe fn load<L: Lanes>(from: *const Self) -> L;
}

impl Stored for f32 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const f32) -> L {
        // SAFETY: the caller vouches for sixteen readable values.
        unsafe { L::load(from) }
    }
}

/// A bf16 by its bits.
impl Stored for u16 {
    #[inline(always)]
    unsafe fn load<L: Lanes>(from: *const u16) -> L {
        // SAFETY: the caller vouches for sixteen readable values.
        unsafe { L::load_bf16(from) }
    }
}

/// An array of sixteen; on AArch64 the compiler makes NEON of it.
#[derive(Clone, Copy)]
pub struct Portable([f32; LANES]);

impl Portable {
    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(f32, f32) -> f32) -> Self {
        Portable(std::array::from_fn(|lane| f(self.0[lane], other.0[lane])))
    }
}

impl Lanes for Portable {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Portable([value; LANES])
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller vouches for sixteen readable values.
        Portable(unsafe { from.cast::<[f32; LANES]>().read_unaligned() })
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        // SAFETY: the caller vouches for sixteen readable values.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Portable(halves.map(|half| f32::from_bits(u32::from(half) << 16)))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for sixteen writable values.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Portable(std::array::from_fn(|lane| {
            self.0[lane].mul_add(factor.0[lane], addend.0[lane])
        }))
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        self.zip(other, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        self.zip(other, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        self.zip(other, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        self.zip(other, |a, b| a / b)
    }
    // The x86 instructions give the second operand where they cannot compare; so do these.
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        self.zip(other, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        self.zip(other, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn round(self) -> Self {
        Portable(self.0.map(f32::round_ties_even))
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Portable(
            self.0
                .map(|whole| f32::from_bits(((whole as i32 + 127) as u32) << 23)),
        )
    }
    #[inline(always)]
    fn zero_below(self, bound: Self, value: Self) -> Self {
        Portable(std::array::from_fn(|lane| {
            if self.0[lane] < bound.0[lane] {
                0.0
            } else {
                value.0[lane]
            }
        }))
    }
}

/// One AVX-512 register. Only code behind [`vectorised!`] makes values of it, after `Isa::detect` found the instructions.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx512(__m512);

// SAFETY of every block below: values of this type exist only where AVX-512F was detected; the pointers are the caller's.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx512 {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        Avx512(unsafe { _mm512_set1_ps(value) })
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        Avx512(unsafe { _mm512_loadu_ps(from) })
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
        unsafe {
            let halves = _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast()));
            Avx512(_mm512_castsi512_ps(_mm512_slli_epi32::<16>(halves)))
        }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        unsafe { _mm512_storeu_ps(to, self.0) }
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Avx512(unsafe { _mm512_fmadd_ps(self.0, factor.0, addend.0) })
    }
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_add_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_sub_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_mul_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_div_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_max_ps(self.0, other.0) })
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        Avx512(unsafe { _mm512_min_ps(self.0, other.0) })
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
}

/// Two AVX2 registers. Only code behind [`vectorised!`] makes values of it, after `Isa::detect` found the instructions.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub struct Avx2(__m256, __m256);

// SAFETY of every block below: values of this type exist only where AVX2 and FMA were detected; the pointers are the caller's.
#[cfg(target_arch = "x86_64")]
impl Lanes for Avx2 {
    #[inline(always)]
    fn splat(value: f32) -> Self {
        unsafe { Avx2(_mm256_set1_ps(value), _mm256_set1_ps(value)) }
    }
    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        unsafe { Avx2(_mm256_loadu_ps(from), _mm256_loadu_ps(from.add(8))) }
    }
    #[inline(always)]
    unsafe fn load_bf16(from: *const u16) -> Self {
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
    unsafe fn store(self, to: *mut f32) {
        unsafe {
            _mm256_storeu_ps(to, self.0);
            _mm256_storeu_ps(to.add(8), self.1);
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
    #[inline(always)]
    fn add(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_add_ps(self.0, other.0),
                _mm256_add_ps(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_sub_ps(self.0, other.0),
                _mm256_sub_ps(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn mul(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_mul_ps(self.0, other.0),
                _mm256_mul_ps(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn div(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_div_ps(self.0, other.0),
                _mm256_div_ps(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn max(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_max_ps(self.0, other.0),
                _mm256_max_ps(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn min(self, other: Self) -> Self {
        unsafe {
            Avx2(
                _mm256_min_ps(self.0, other.0),
                _mm256_min_ps(self.1, other.1),
            )
        }
    }
    #[inline(always)]
    fn round(self) -> Self {
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        unsafe {
            Avx2(
                _mm256_round_ps::<NEAREST>(self.0),
                _mm256_round_ps::<NEAREST>(self.1),
            )
        }
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
}

/// Defines a function that runs a kernel, generic over [`Lanes`], on the instruction set it is given.
///
/// What a kernel calls must be `#[inline(always)]`, and no closure of it may touch lanes: a closure is a function
/// without the instructions, and every operation in it becomes a call.
macro_rules! vectorised {
    ($(#[$attribute:meta])* $visibility:vis fn $name:ident($($argument:ident: $type:ty),* $(,)?) = $kernel:ident) => {
        $(#[$attribute])*
        $visibility fn $name(isa: $crate::ops::cpu::lanes::Isa, $($argument: $type),*) {
            use $crate::ops::cpu::lanes;
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx2,fma")]
                fn avx512($($argument: $type),*) {
                    $kernel::<lanes::Avx512>($($argument),*);
                }
                #[target_feature(enable = "avx2,fma")]
                fn avx2($($argument: $type),*) {
                    $kernel::<lanes::Avx2>($($argument),*);
                }
                match isa {
                    // SAFETY: `Isa::detect` is the only source of these values, and found the instructions.
                    lanes::Isa::Avx512 => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    lanes::Isa::Avx2 => return unsafe { avx2($($argument),*) },
                    lanes::Isa::Portable => {}
                }
            }
            let _ = isa;
            $kernel::<lanes::Portable>($($argument),*);
        }
    };
}
pub(crate) use vectorised;

#[cfg(test)]
mod tests {
    use super::*;

    /// Every instruction set that this machine has.
    pub fn available() -> Vec<Isa> {
        match Isa::detect() {
            Isa::Avx512 => vec![Isa::Portable, Isa::Avx2, Isa::Avx512],
            Isa::Avx2 => vec![Isa::Portable, Isa::Avx2],
            Isa::Portable => vec![Isa::Portable],
        }
    }

    #[inline(always)]
    fn exp_kernel<L: Lanes>(values: &mut [f32]) {
        for group in values.as_chunks_mut::<LANES>().0 {
            *group = exp(L::from_array(group)).to_array();
        }
    }
    vectorised! { fn exp_all(values: &mut [f32]) = exp_kernel }

    #[test]
    fn exp_is_accurate_and_the_same_on_every_instruction_set() {
        let inputs: Vec<f32> = (0..16 * 4096)
            .map(|i| -100.0 + i as f32 * (188.0 / 65536.0))
            .collect();
        let mut reference = inputs.clone();
        exp_all(Isa::Portable, &mut reference);
        for isa in available() {
            let mut values = inputs.clone();
            exp_all(isa, &mut values);
            assert!(
                values
                    .iter()
                    .zip(&reference)
                    .all(|(a, b)| a.to_bits() == b.to_bits()),
                "{}",
                isa.name()
            );
        }
        for (x, y) in inputs.iter().zip(&reference) {
            let exact = f64::from(*x).exp();
            if *x >= -87.3 {
                assert!(
                    (f64::from(*y) - exact).abs() <= 1.2e-7 * exact,
                    "exp({x}) = {y}, not {exact}"
                );
            } else {
                assert!(*y < 2e-38);
            }
        }
        assert_eq!(exp_scalar(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_scalar(0.0), 1.0);
    }
}
