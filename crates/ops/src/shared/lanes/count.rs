//! A number of rows as a constant, so that their sums stay in registers, each in a function of its own: the time to compile a
//! function grows with the square of its loops.

/// What is done for a number of rows.
pub trait Counted {
    /// So many at a time, at most: what the registers hold, up to twelve.
    const MOST: usize;

    /// Does it for `COUNT` rows, `#[inline(always)]` as all that kernels call. Gives `COUNT`.
    fn call<const COUNT: usize>(self) -> usize;
}

pub trait Apart {
    /// `body`, in a function with the instructions.
    fn apart<const COUNT: usize>(body: impl Counted) -> usize;
}

/// Implements [`Apart`] for what only code with the instructions is generic over.
macro_rules! apart {
    ($machine:ty, $instructions:literal) => {
        impl $crate::shared::lanes::Apart for $machine {
            #[inline(always)]
            fn apart<const COUNT: usize>(body: impl $crate::shared::lanes::Counted) -> usize {
                #[target_feature(enable = $instructions)]
                #[inline(never)]
                fn apart<const COUNT: usize>(body: impl $crate::shared::lanes::Counted) -> usize {
                    body.call::<COUNT>()
                }
                // SAFETY: whoever names this machine has found its instructions.
                unsafe { apart::<COUNT>(body) }
            }
        }
    };
}
pub(crate) use apart;

/// Calls `body` with the smaller of `count`, from one on, and the most at a time, as a constant. Gives it.
#[inline(always)]
pub fn by_count<A: Apart, C: Counted>(count: usize, body: C) -> usize {
    macro_rules! each {
        ($($number:literal)*) => {
            match count.min(C::MOST) {
                // What is for other registers is not compiled.
                $($number if const { $number <= C::MOST } => A::apart::<$number>(body),)*
                number => unreachable!("{number} rows at a time"),
            }
        };
    }
    each!(1 2 3 4 5 6 7 8 9 10 11 12)
}
