//! In place of the CUDA backend, in builds without it.

use super::absent::{Absent, Kind};
use super::{Limits, Machine, OpsError};

pub type Cuda = Absent<NoCuda>;

#[derive(Clone, Debug)]
pub struct NoCuda;

impl Kind for NoCuda {
    const MACHINE: Machine = Machine::Cuda;
}

impl Cuda {
    /// # Errors
    /// Always.
    pub fn open(ordinal: usize) -> Result<Cuda, OpsError> {
        Err(OpsError::NoDevice {
            device: format!("cuda:{ordinal}"),
            reason: "this build has no CUDA (feature `cuda`)".to_owned(),
        })
    }

    /// The same GPU with a stream of its own.
    ///
    /// # Errors
    /// When the driver refuses.
    pub fn for_engine(&self) -> Result<Cuda, OpsError> {
        match self.0 {}
    }

    pub fn hurry(&mut self) {
        match self.0 {}
    }

    pub fn available_memory(&self) -> usize {
        match self.0 {}
    }

    /// # Errors
    /// When the GPU refuses.
    pub fn measure_limits(&self) -> Result<Limits, OpsError> {
        match self.0 {}
    }
}
