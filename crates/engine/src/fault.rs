//! `faults!`: an enum of errors that says of each, beside its text, who is to blame and what to do about it.

/// Declares an enum of errors and implements [`Diagnosis`](crate::diagnosis::Diagnosis) for it.
///
/// A variant's attributes and fields are those of an enum; `=> Blame` follows, and the hint after a comma, where there is
/// one: a `&str`, a `String` or an `Option<String>`. Both may use the fields, which are references there.
#[macro_export]
macro_rules! faults {
    ($(#[$of_all:meta])* $visibility:vis enum $name:ident { $(
        $(#[$attribute:meta])*
        $variant:ident
        $({ $($(#[$doc:meta])* $field:ident: $type:ty),* $(,)? })?
        $(($inner:ident: $(#[$from:ident])? $of:ty))?
        => $blame:expr $(, $hint:expr)?;
    )* }) => {
        $(#[$of_all])*
        $visibility enum $name { $(
            $(#[$attribute])*
            $variant $({ $($(#[$doc])* $field: $type),* })? $(($(#[$from])? $of))?,
        )* }

        #[allow(unused_variables)]
        impl $crate::diagnosis::Diagnosis for $name {
            fn blame(&self) -> $crate::diagnosis::Blame {
                use $crate::diagnosis::Blame::*;
                match self { $(
                    $name::$variant $({ $($field),* })? $(($inner))? => $blame,
                )* }
            }

            fn hint(&self) -> Option<String> {
                match self { $(
                    $name::$variant $({ $($field),* })? $(($inner))? => {
                        None$(.or($crate::fault::Hint::said($hint)))?
                    }
                )* }
            }
        }
    };
}

pub use faults;

/// What a hint may be given as.
pub trait Hint {
    /// As it is told, where there is one.
    fn said(self) -> Option<String>;
}

impl Hint for &str {
    fn said(self) -> Option<String> {
        Some(self.to_owned())
    }
}

impl Hint for String {
    fn said(self) -> Option<String> {
        Some(self)
    }
}

impl Hint for Option<String> {
    fn said(self) -> Option<String> {
        self
    }
}
