//! A number of rows as a constant, so that their sums stay in registers.

/// `$body`, over `$lanes`, with `$rows` a constant: `$count` from one on, of what is more the last number of these.
macro_rules! by_count {
    ($lanes:ty, $count:expr, 4, $rows:ident => $body:expr) => {
        by_count!(@ $lanes, $count, [1 2 3] 4, $rows => $body)
    };
    ($lanes:ty, $count:expr, 6, $rows:ident => $body:expr) => {
        by_count!(@ $lanes, $count, [1 2 3 4 5] 6, $rows => $body)
    };
    ($lanes:ty, $count:expr, 12, $rows:ident => $body:expr) => {
        by_count!(@ $lanes, $count, [1 2 3 4 5 6 7 8 9 10 11] 12, $rows => $body)
    };
    (@ $lanes:ty, $count:expr, [$($few:literal)*] $most:literal, $rows:ident => $body:expr) => {
        match $count {
            $($few => {
                const $rows: usize = $few;
                by_count!(@ $lanes, $body)
            })*
            _ => {
                const $rows: usize = $most;
                by_count!(@ $lanes, $body)
            }
        }
    };
    (@ $lanes:ty, $body:expr) => {
        if const { <$lanes as $crate::cpu::lanes::Lanes>::APART } {
            $crate::cpu::lanes::apart(|| $body)
        } else {
            $body
        }
    };
}
pub(crate) use by_count;

/// In a function of its own.
#[inline(never)]
pub fn apart<R>(body: impl FnOnce() -> R) -> R {
    body()
}
