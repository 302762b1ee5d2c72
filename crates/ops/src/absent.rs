//! In place of the CUDA backend, in builds without it: a type without values, so its methods are never called.

use super::{Cpu, OpsError, Precision};

#[derive(Clone, Debug)]
pub enum Cuda {}

/// Methods of a value that never is.
macro_rules! never {
    ($($name:ident($($argument:ty),*) -> $returned:ty;)*) => {
        $(pub fn $name(&self, $(_: $argument),*) -> $returned {
            match *self {}
        })*
    };
}

impl Cuda {
    /// # Errors
    /// Always.
    pub fn open(ordinal: usize) -> Result<Cuda, OpsError> {
        let reason = "this build has no CUDA; `cargo build --features cuda` has it, `--features candle-cuda` what --device candle-cuda needs".to_owned();
        Err(OpsError::NoDevice { device: format!("cuda:{ordinal}"), reason })
    }

    pub fn describe_all() -> Vec<String> {
        Vec::new()
    }

    // `for_engine` and `for_encoder` give some backend, as the signature demands one.
    never! {
        for_engine() -> Result<Cpu, OpsError>;
        for_encoder(Precision) -> Result<Cpu, OpsError>;
        kind() -> String;
        threads() -> usize;
        available_memory() -> usize;
        bytes_per_second() -> Result<f64, OpsError>;
    }
}
