//! In place of the CUDA backend, in builds without it: a type without values, so its methods are never called.

use super::{Cpu, Limits, OpsError};

#[derive(Clone, Debug)]
pub enum Cuda {}

impl Cuda {
    /// # Errors
    /// Always.
    pub fn open(ordinal: usize) -> Result<Cuda, OpsError> {
        Err(OpsError::NoDevice {
            device: format!("cuda:{ordinal}"),
            reason: "this build has no CUDA (feature `cuda`)".to_owned(),
        })
    }

    pub fn describe_all() -> Vec<String> {
        Vec::new()
    }

    /// Some backend, as the signature demands one.
    pub fn for_engine(&self) -> Result<Cpu, OpsError> {
        match *self {}
    }

    pub fn kind(&self) -> String {
        match *self {}
    }

    pub fn threads(&self) -> usize {
        match *self {}
    }

    pub fn set_fast_math(&mut self) {
        match *self {}
    }

    pub fn available_memory(&self) -> usize {
        match *self {}
    }

    pub fn measure_limits(&self) -> Result<Limits, OpsError> {
        match *self {}
    }
}
