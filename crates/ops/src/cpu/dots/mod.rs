//! Sixteen integer dots side by side, the unit of the quantised kernels: exact, so equal on every instruction set.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
#[cfg(target_arch = "x86_64")]
mod avx_vnni;
mod portable;

#[cfg(target_arch = "x86_64")]
pub use avx_vnni::AvxVnniDots;
#[cfg(target_arch = "x86_64")]
pub use avx2::Avx2Dots;
#[cfg(target_arch = "x86_64")]
pub use avx512::Avx512Dots;
pub use portable::PortableDots;

use super::lanes::{Apart, Lanes};
pub use crate::shared::rounding::STEP_BYTES;

/// Sixteen i32 sums of products, a column each. Products of a weight of at most 127 and an activation of at most
/// 127; the sums of a block of 32 stay far inside an i32.
pub trait Dots: Copy + Apart {
    type Floats: Lanes;
    /// A step's weights as the instructions want them.
    type Weights: Copy;
    /// Rows that share a pass over one tile, and over two: what the registers hold.
    const ROWS: usize;
    const ROWS_OF_TWO: usize;
    /// Rows of a panel that do so, at most eight, and tiles at a time, one or two.
    const ROWS_OF_PANEL: usize;
    const TILES_OF_PANEL: usize;

    /// Weights between −127 and 127, stored with 128 added.
    ///
    /// # Safety
    /// `from` must be readable for 64 bytes.
    unsafe fn load_bytes(from: *const u8) -> Self::Weights;
    /// Weights between 0 and 15, two steps of them: the lower halves of the bytes, and the upper ones.
    ///
    /// # Safety
    /// `from` must be readable for 64 bytes.
    unsafe fn load_nibbles(from: *const u8) -> [Self::Weights; 2];
    fn zero() -> Self;
    /// The sums before the first of a block's steps with [`Dots::load_bytes`], where `offset` is −128 times the sum of
    /// the block's activations: where the added 128 stays in the products, it comes off here.
    #[inline(always)]
    fn before_bytes(_offset: i32) -> Self {
        Self::zero()
    }
    /// Adds each column's dot with four activations, an i8 a byte.
    fn add(self, weights: Self::Weights, activations: i32) -> Self;
    /// The sums; exact up to 2²⁴.
    fn to_floats(self) -> Self::Floats;
}

/// Defines a function that runs a kernel, generic over [`Dots`], on the instruction set it is given; the rules for
/// kernels are those of [`super::lanes::vectorised!`].
macro_rules! dotted {
    (
        fn $name:ident $(<$generic:ident: $bound:ident>)? ($($argument:ident: $type:ty),* $(,)?)
        = $kernel:ident $(<$more:ident>)?
    ) => {
        fn $name $(<$generic: $bound>)? (isa: $crate::shared::Isa, $($argument: $type),*) {
            use $crate::cpu::dots;
            use $crate::shared::Isa;
            #[cfg(target_arch = "x86_64")]
            {
                #[target_feature(enable = "avx512f,avx512bw,avx512vnni,avx2,fma,f16c")]
                fn avx512 $(<$generic: $bound>)? ($($argument: $type),*) {
                    $kernel::<dots::Avx512Dots $(, $more)?>($($argument),*);
                }
                #[target_feature(enable = "avxvnni,avx2,fma,f16c")]
                fn avx_vnni $(<$generic: $bound>)? ($($argument: $type),*) {
                    $kernel::<dots::AvxVnniDots $(, $more)?>($($argument),*);
                }
                #[target_feature(enable = "avx2,fma,f16c")]
                fn avx2 $(<$generic: $bound>)? ($($argument: $type),*) {
                    $kernel::<dots::Avx2Dots $(, $more)?>($($argument),*);
                }
                match isa {
                    // SAFETY: `Isa::available` is the only source of these values, and found the instructions.
                    Isa::Avx512Vnni | Isa::Avx512Bf16 | Isa::Amx => return unsafe { avx512($($argument),*) },
                    // SAFETY: as above.
                    Isa::AvxVnni => return unsafe { avx_vnni($($argument),*) },
                    // SAFETY: as above.
                    Isa::Avx512 | Isa::Avx2 => return unsafe { avx2($($argument),*) },
                    Isa::Portable => {}
                }
            }
            let _ = isa;
            $kernel::<dots::PortableDots $(, $more)?>($($argument),*);
        }
    };
}
pub(crate) use dotted;
