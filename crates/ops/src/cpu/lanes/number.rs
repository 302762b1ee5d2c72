//! A number where a kernel computes with one instead of sixteen.

use std::ops::{Add, Div, Mul, Sub};

/// f32, or what stands for it.
pub trait Number:
    Copy
    + From<f32>
    + Into<f32>
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
{
    fn sqrt(self) -> Self;
    /// Of a whole number.
    fn whole(self) -> i32;
}

impl Number for f32 {
    #[inline(always)]
    fn sqrt(self) -> f32 {
        f32::sqrt(self)
    }
    #[inline(always)]
    fn whole(self) -> i32 {
        self as i32
    }
}
