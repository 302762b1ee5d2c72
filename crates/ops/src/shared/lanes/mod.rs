//! Sixteen f32 lanes, the unit of every CPU kernel: as one AVX-512 register, two AVX2 registers, or an array.
//!
//! Each method rounds once and the same way on every instruction set, so a kernel written over lanes gives
//! the same bits on all of them.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod count;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512;
pub(crate) use count::apart;
pub use count::{Apart, Counted, by_count};
pub use portable::Portable;

pub const LANES: usize = 16;

/// How far ahead of their use weights are asked for in the second-level cache: the processor itself looks less far ahead, and
/// waits where a page of memory ends.
pub const FAR_BYTES: usize = 1 << 15;

/// The same where `streams` parts that lie one after another, of `bytes` each, are read side by side: the place in the next ones,
/// where these end before.
pub fn far_bytes(streams: usize, bytes: usize) -> usize {
    if streams > 1 && bytes <= FAR_BYTES { streams * bytes } else { FAR_BYTES }
}

/// Sixteen f32 values. The pointers given to `load` and `store` must be valid for sixteen values (of any alignment).
pub trait Lanes: Copy + Apart {
    /// Tiles and rows of a product that the registers hold together.
    const TILES: usize;
    const ROWS: usize;

    /// Asks for the cache line at `from`, which need not exist.
    fn prefetch(from: *const u8);
    /// Likewise, in the second-level cache.
    fn prefetch_far(from: *const u8);
    fn splat(value: f32) -> Self;
    /// # Safety
    /// `from` must be readable for 16 values.
    unsafe fn load(from: *const f32) -> Self;
    /// Sixteen pairs of bf16, by their bits: all the first ones, and all the second ones.
    ///
    /// # Safety
    /// `from` must be readable for 32 values.
    unsafe fn load_bf16(from: *const u16) -> [Self; 2];
    /// # Safety
    /// `from` must be readable for 16 values, bf16 by their bits.
    unsafe fn load_bf16_row(from: *const u16) -> Self;
    /// # Safety
    /// `from` must be readable for 16 values, f16 by their bits.
    unsafe fn load_f16(from: *const u16) -> Self;
    /// # Safety
    /// `from` must be readable for 16 values.
    unsafe fn load_u8(from: *const u8) -> Self;
    /// # Safety
    /// `to` must be writable for 16 values.
    unsafe fn store(self, to: *mut f32);
    /// The lowest byte of each lane's bits.
    fn low_bytes(self) -> [u8; LANES];
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
    /// Turns sixteen rows of sixteen values, `from_stride` apart, into columns of rows `to_stride` apart.
    ///
    /// # Safety
    /// Each row of `from` must be readable, and each of `to` writable, for 16 values.
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize);

    #[inline(always)]
    fn to_array(self) -> [f32; LANES] {
        let mut array = [0.0; LANES];
        // SAFETY: the array holds sixteen values.
        unsafe { self.store(array.as_mut_ptr()) };
        array
    }

    /// To sixteen values, or the first lanes to fewer.
    #[inline(always)]
    fn store_first(self, to: &mut [f32]) {
        if to.len() == LANES {
            // SAFETY: it has sixteen values.
            unsafe { self.store(to.as_mut_ptr()) };
        } else {
            to.copy_from_slice(&self.to_array()[..to.len()]);
        }
    }

    #[inline(always)]
    fn from_array(array: &[f32; LANES]) -> Self {
        // SAFETY: the array holds sixteen values.
        unsafe { Self::load(array.as_ptr()) }
    }

    /// The sum over the lanes, as the tree of [`by_halves`].
    #[inline(always)]
    fn sum(self) -> f32 {
        by_halves(self.to_array(), |a, b| a + b)
    }

    #[inline(always)]
    fn maximum(self) -> f32 {
        by_halves(self.to_array(), f32::max)
    }
}

/// All sixteen as one, as a tree of fixed shape: 8 and 8, 4 and 4, 2 and 2, 1 and 1.
#[inline(always)]
pub fn by_halves<T: Copy>(mut values: [T; LANES], join: impl Fn(T, T) -> T) -> T {
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            values[lane] = join(values[lane], values[lane + width]);
        }
        width /= 2;
    }
    values[0]
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
    const COEFFICIENTS: [f32; 6] =
        [1.0 / 5040.0, 1.0 / 720.0, 1.0 / 120.0, 1.0 / 24.0, 1.0 / 6.0, 0.5];
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

/// Defines a function that runs a kernel, generic over [`Lanes`], on the instruction set it is given.
///
/// What a kernel calls must be `#[inline(always)]`, and no closure of it may touch lanes: a closure is a function
/// without the instructions, and every operation in it becomes a call.
///
/// What stands behind the kernel's name comes after the lanes among its generics; a function generic over a type has it there.
macro_rules! vectorised {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident $(<$generic:ident: $bound:ident>)? ($($argument:ident: $type:ty),* $(,)?)
        = $kernel:ident $(<$more:tt>)?
    ) => {
        $(#[$attribute])*
        $visibility fn $name $(<$generic: $bound>)? (isa: $crate::shared::Isa, $($argument: $type),*) {
            use $crate::shared::{Isa, lanes};
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx2,fma,f16c")]
                fn avx512 $(<$generic: $bound>)? ($($argument: $type),*) {
                    $kernel::<lanes::Avx512 $(, $more)?>($($argument),*);
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2 $(<$generic: $bound>)? ($($argument: $type),*) {
                    $kernel::<lanes::Avx2 $(, $more)?>($($argument),*);
                }
                match isa {
                    // SAFETY: `Isa::available` is the only source of these values, and found the instructions.
                    Isa::Avx512 | Isa::Avx512Vnni | Isa::Avx512Bf16 | Isa::Amx => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    Isa::Avx2 | Isa::AvxVnni => return unsafe { avx2($($argument),*) },
                    Isa::Portable => {}
                }
            }
            let _ = isa;
            $kernel::<lanes::Portable $(, $more)?>($($argument),*);
        }
    };
}
pub(crate) use vectorised;

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::*;

    #[inline(always)]
    fn transpose_kernel<L: Lanes>(from: &[f32; 16 * 20], to: &mut [f32; 16 * 32]) {
        // SAFETY: sixteen rows of twenty values, and of thirty-two.
        unsafe { L::transpose(from.as_ptr(), 20, to.as_mut_ptr(), 32) };
    }
    vectorised! { fn transpose(from: &[f32; 16 * 20], to: &mut [f32; 16 * 32]) = transpose_kernel }

    #[test]
    fn rows_become_columns_and_nothing_beside_them_changes() {
        let from: [f32; 16 * 20] = std::array::from_fn(|index| index as f32);
        for isa in Isa::available() {
            let mut to = [-1.0; 16 * 32];
            transpose(isa, &from, &mut to);
            for (index, value) in to.into_iter().enumerate() {
                let (row, column) = (index / 32, index % 32);
                let expected = if column < 16 { from[column * 20 + row] } else { -1.0 };
                assert_eq!(value, expected, "{isa:?}, row {row}, column {column}");
            }
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
        let inputs: Vec<f32> =
            (0..16 * 4096).map(|i| -100.0 + i as f32 * (188.0 / 65536.0)).collect();
        let mut reference = inputs.clone();
        exp_all(Isa::Portable, &mut reference);
        for isa in Isa::available() {
            let mut values = inputs.clone();
            exp_all(isa, &mut values);
            assert!(
                values.iter().zip(&reference).all(|(a, b)| a.to_bits() == b.to_bits()),
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
        for (x, expected) in [(f32::NEG_INFINITY, 0.0), (0.0, 1.0)] {
            assert_eq!(exp(Portable([x; LANES])).0[0], expected);
        }
    }
}
