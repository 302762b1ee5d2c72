//! Why arithmetic could not be done, or not as it was asked for.

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
use crate::{Quantisation, StoredType};

#[derive(Clone, Debug, Error, PartialEq)]
pub enum OpsError {
    #[error("no memory for {what}: {reason}")]
    Memory { what: &'static str, reason: String },
    #[error("{device} failed: {reason}")]
    Device { device: String, reason: String },
    #[error("there is no {device}: {reason}")]
    NoDevice { device: String, reason: String },
    #[error("`{0}` is no device; known: cpu, cuda, cuda:N, metal")]
    DeviceName(String),
    #[error("a panel cannot run on {one} and {other} at once: their bits differ")]
    MixedDevices { one: String, other: String },
    #[error("{0} is named twice by --device")]
    RepeatedDevice(String),
    #[error(
        "WARDROUND_CUDA_WITHOUT names `{0}`, which cannot be left out; known: wgmma, units, waves, or \"units,waves\""
    )]
    CudaPart(String),
    #[error("--fast is not supported on {device}")]
    NotFaster { device: String },
    #[error("{device} cannot keep weights as {precision}")]
    Precision { device: String, precision: String },
    #[error("{device} keeps keys and values as {kept}, not as {wanted}")]
    KvPrecision { device: String, kept: StoredType, wanted: StoredType },
    #[error("`{0}` is no quantisation; known: {known}", known = Quantisation::ALL.map(Quantisation::name).join(", "))]
    QuantisationName(String),
    #[error("{device} cannot keep weights as --quant {quantisation} does")]
    Quantisation { device: String, quantisation: Quantisation },
}

impl OpsError {
    pub fn memory(what: &'static str, error: impl ToString) -> OpsError {
        OpsError::Memory { what, reason: error.to_string() }
    }
}

impl Diagnosis for OpsError {
    fn blame(&self) -> Blame {
        match self {
            OpsError::Memory { .. } | OpsError::Device { .. } => Blame::Machine,
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            OpsError::Memory { .. } => {
                "keep weights smaller with --quant q8_0 or q4_k, or fewer keys and values with --kv-tokens"
            }
            OpsError::Device { .. }
            | OpsError::DeviceName(_)
            | OpsError::CudaPart(_)
            | OpsError::QuantisationName(_) => return None,
            OpsError::RepeatedDevice(_) => "engines on one device share it as it is: name it once",
            OpsError::MixedDevices { .. } => "take GPUs of one compute capability",
            OpsError::NoDevice { .. } => {
                "`wardround doctor` lists what there is; --device cpu runs everywhere"
            }
            OpsError::NotFaster { .. } => "leave --fast out, or take --device cuda",
            OpsError::Precision { .. } => "leave --dtype at auto, or take --device cpu",
            OpsError::KvPrecision { .. } => "leave --kv-dtype at auto, or take --device cpu",
            OpsError::Quantisation { .. } => {
                "leave --quant at none (a GPU takes q8_0 and q4_k too), or take --device cpu"
            }
        };
        Some(hint.to_owned())
    }
}
