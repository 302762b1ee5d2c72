//! Sixteen lanes as an array.

use super::{Apart, Counted, LANES, Lanes};

/// An array of sixteen; on AArch64 the compiler makes NEON of it.
#[derive(Clone, Copy)]
pub struct Portable(pub(crate) [f32; LANES]);

macro_rules! lane_by_lane {
    ($($name:ident: |$a:ident, $b:ident| $result:expr;)*) => {
        $(#[inline(always)]
        fn $name(self, other: Self) -> Self {
            Portable(std::array::from_fn(|lane| {
                let ($a, $b) = (self.0[lane], other.0[lane]);
                $result
            }))
        })*
    };
}

impl Apart for Portable {
    #[inline(never)]
    fn apart<const COUNT: usize>(body: impl Counted) -> usize {
        body.call::<COUNT>()
    }
}

impl Lanes for Portable {
    const TILES: usize = 1;
    const ROWS: usize = 4;

    #[inline(always)]
    fn prefetch(_: *const u8) {}
    #[inline(always)]
    fn prefetch_far(_: *const u8) {}
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
    unsafe fn load_bf16(from: *const u16) -> [Self; 2] {
        // SAFETY: the caller vouches for 32 readable values.
        let pairs = unsafe { from.cast::<[[u16; 2]; LANES]>().read_unaligned() };
        [0, 1].map(|half| Portable(pairs.map(|pair| f32::from_bits(u32::from(pair[half]) << 16))))
    }
    #[inline(always)]
    unsafe fn load_bf16_row(from: *const u16) -> Self {
        // SAFETY: the caller vouches for sixteen readable values.
        let row = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Portable(row.map(|bits| f32::from_bits(u32::from(bits) << 16)))
    }
    #[inline(always)]
    unsafe fn load_f16(from: *const u16) -> Self {
        // SAFETY: the caller vouches for sixteen readable values.
        let halves = unsafe { from.cast::<[u16; LANES]>().read_unaligned() };
        Portable(halves.map(|half| half::f16::from_bits(half).to_f32()))
    }
    #[inline(always)]
    unsafe fn load_u8(from: *const u8) -> Self {
        // SAFETY: the caller vouches for sixteen readable values.
        Portable(unsafe { from.cast::<[u8; LANES]>().read() }.map(f32::from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller vouches for sixteen writable values.
        unsafe { to.cast::<[f32; LANES]>().write_unaligned(self.0) }
    }
    #[inline(always)]
    fn low_bytes(self) -> [u8; LANES] {
        self.0.map(|value| value.to_bits() as u8)
    }
    #[inline(always)]
    fn fma(self, factor: Self, addend: Self) -> Self {
        Portable(std::array::from_fn(|lane| self.0[lane].mul_add(factor.0[lane], addend.0[lane])))
    }
    // The x86 instructions give the second operand where they cannot compare; so do the last two.
    lane_by_lane! {
        add: |a, b| a + b;
        sub: |a, b| a - b;
        mul: |a, b| a * b;
        div: |a, b| a / b;
        max: |a, b| if a > b { a } else { b };
        min: |a, b| if a < b { a } else { b };
    }
    #[inline(always)]
    fn round(self) -> Self {
        Portable(self.0.map(f32::round_ties_even))
    }
    #[inline(always)]
    fn power_of_two(self) -> Self {
        Portable(self.0.map(|whole| f32::from_bits(((whole as i32 + 127) as u32) << 23)))
    }
    #[inline(always)]
    fn zero_below(self, bound: Self, value: Self) -> Self {
        Portable(std::array::from_fn(|lane| {
            if self.0[lane] < bound.0[lane] { 0.0 } else { value.0[lane] }
        }))
    }
    #[inline(always)]
    unsafe fn transpose(from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize) {
        for row in 0..LANES {
            // SAFETY: the caller vouches for sixteen rows of sixteen values.
            let values = unsafe { Self::load(from.add(row * from_stride)) };
            for (column, value) in values.0.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { to.add(column * to_stride + row).write(value) };
            }
        }
    }
}
