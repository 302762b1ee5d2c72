//! In place of the Metal backend, in builds without it.

use super::absent::{Absent, Kind};
use super::{Limits, Machine, OpsError};

pub type Metal = Absent<NoMetal>;

#[derive(Clone, Debug)]
pub struct NoMetal;

impl Kind for NoMetal {
    const MACHINE: Machine = Machine::Metal;
}

impl Metal {
    /// # Errors
    /// Always.
    pub fn open(_threads: usize) -> Result<Metal, OpsError> {
        Err(OpsError::NoDevice {
            device: "metal".to_owned(),
            reason: "this build has no Metal (feature `metal`, on macOS)".to_owned(),
        })
    }

    pub fn measure_limits(&self, _buffer_bytes: usize) -> Limits {
        match self.0 {}
    }
}
