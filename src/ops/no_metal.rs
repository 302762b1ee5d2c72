//! In place of the Metal backend, in builds without it: a type without values, so its methods are never called.

use super::{Cpu, Limits, OpsError};

#[derive(Clone, Debug)]
pub enum Metal {}

impl Metal {
    /// # Errors
    /// Always.
    pub fn open(_threads: usize) -> Result<Metal, OpsError> {
        Err(OpsError::NoDevice {
            device: "metal".to_owned(),
            reason: "this build has no Metal (feature `metal`, on macOS)".to_owned(),
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

    pub fn measure_limits(&self, _buffer_bytes: usize) -> Limits {
        match *self {}
    }
}
