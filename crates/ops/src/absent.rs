//! In place of a GPU's backend, in builds without it: a type without values, so its methods are never called.

use super::{Cpu, EMULATING, Limits, OpsError, Precision};

#[derive(Clone, Debug)]
pub enum Absent<const CUDA: bool> {}

pub type Cuda = Absent<true>;
pub type Metal = Absent<false>;

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
}

impl Cuda {
    /// # Errors
    /// Always.
    pub fn emulating_hopper() -> Result<Cuda, OpsError> {
        let reason = "this build has no emulator (feature `cuda-emulated`)".to_owned();
        Err(OpsError::NoDevice { device: EMULATING.to_owned(), reason })
    }

    pub fn set_fast_math(&mut self) {
        match *self {}
    }

    pub fn available_memory(&self) -> usize {
        match *self {}
    }

    /// Some backend, as the signature demands one.
    pub fn for_encoder(&self, _precision: Precision) -> Result<Cpu, OpsError> {
        match *self {}
    }

    pub fn measure_limits(&self) -> Result<Limits, OpsError> {
        match *self {}
    }
}

impl Metal {
    pub fn measure_limits(&self, _buffer_bytes: usize) -> Limits {
        match *self {}
    }
}
