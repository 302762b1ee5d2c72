//! Sixteen values that stay together.

use super::LANES;

/// 64 bytes that the compiler takes not apart: kernels are compiled for each size of their blocks.
#[derive(Clone, Copy)]
pub struct Whole(Register);

#[cfg(target_arch = "x86_64")]
type Register = std::arch::x86_64::__m512i;
#[cfg(not(target_arch = "x86_64"))]
type Register = [u128; 4];

/// What may be any 64 bytes.
pub trait Bytes: Copy {}
impl Bytes for [f32; LANES] {}
impl Bytes for [i32; LANES] {}
impl Bytes for [i8; 4 * LANES] {}

impl Whole {
    #[inline(always)]
    pub fn of<T: Bytes>(values: T) -> Whole {
        const { assert!(size_of::<T>() == size_of::<Register>()) };
        // SAFETY: as many bytes, of which all are values.
        Whole(unsafe { std::mem::transmute_copy(&values) })
    }

    #[inline(always)]
    pub fn values<T: Bytes>(self) -> T {
        const { assert!(size_of::<T>() == size_of::<Register>()) };
        // SAFETY: as many bytes, of which all are values.
        unsafe { std::mem::transmute_copy(&self.0) }
    }
}
