//! In place of a GPU's backend, in builds without it: a type without values, so its methods are never called.

use super::{Cpu, Limits, OpsError, Precision};

#[derive(Clone, Debug)]
pub enum Absent<const CUDA: bool> {}

pub type Cuda = Absent<true>;
pub type Metal = Absent<false>;

/// Methods of a value that never is.
macro_rules! never {
    ($($name:ident($($argument:ty),*) -> $returned:ty;)*) => {
        $(pub fn $name(&self, $(_: $argument),*) -> $returned {
            match *self {}
        })*
    };
}

impl<const CUDA: bool> Absent<CUDA> {
    /// # Errors
    /// Always. `number` is a GPU's for CUDA, of threads for Metal.
    pub fn open(number: usize) -> Result<Absent<CUDA>, OpsError> {
        let (device, reason) = match CUDA {
            true => (format!("cuda:{number}"), "this build has no CUDA (feature `cuda`)"),
            false => ("metal".to_owned(), "this build has no Metal (feature `metal`, on macOS)"),
        };
        Err(OpsError::NoDevice { device, reason: reason.to_owned() })
    }

    pub fn describe_all() -> Vec<String> {
        Vec::new()
    }

    // `for_engine` gives some backend, as the signature demands one.
    never! {
        for_engine() -> Result<Cpu, OpsError>;
        kind() -> String;
        threads() -> usize;
    }
}

impl Cuda {
    never! {
        set_fast_math() -> ();
        available_memory() -> usize;
        for_encoder(Precision) -> Result<Cpu, OpsError>;
        measure_limits() -> Result<Limits, OpsError>;
    }
}

impl Metal {
    never! {
        measure_limits(usize) -> Limits;
    }
}
