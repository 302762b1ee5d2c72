//! Why arithmetic could not be done, or not as it was asked for.

use thiserror::Error;

use crate::Quantisation;
use crate::diagnosis::{Blame, Diagnosis};

#[derive(Clone, Debug, Error, PartialEq)]
pub enum OpsError {
    #[error("no memory for {what}: {reason}")]
    Memory { what: &'static str, reason: String },
    #[error("{device} failed: {reason}")]
    Device { device: String, reason: String },
    #[error("there is no {device}: {reason}")]
    NoDevice { device: String, reason: String },
    /// What was asked for cannot be had.
    #[error("{problem}")]
    Refused { problem: String, hint: Option<&'static str> },
}

impl OpsError {
    pub fn memory(what: &'static str, error: impl ToString) -> OpsError {
        OpsError::Memory { what, reason: error.to_string() }
    }

    pub fn refused(problem: String, hint: &'static str) -> OpsError {
        OpsError::Refused { problem, hint: Some(hint) }
    }

    /// A name that is none of those that are known.
    pub fn unknown(problem: String) -> OpsError {
        OpsError::Refused { problem, hint: None }
    }

    pub fn quantisation(device: &str, quantisation: Quantisation) -> OpsError {
        OpsError::refused(
            format!("{device} cannot keep weights as --quant {quantisation} does"),
            "leave --quant at none (a GPU takes q8_0 and q4_k too), or take --device cpu",
        )
    }
}

impl Diagnosis for OpsError {
    fn blame(&self) -> Blame {
        match self {
            OpsError::Memory { .. } | OpsError::Device { .. } => Blame::Machine,
            OpsError::NoDevice { .. } | OpsError::Refused { .. } => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            OpsError::Memory { .. } => {
                "keep weights smaller with --quant q8_0 or q4_k, or make the KV cache smaller with --kv-tokens"
            }
            OpsError::Device { .. } => return None,
            OpsError::NoDevice { .. } => {
                "`wardround doctor` lists what there is; --device cpu runs everywhere"
            }
            OpsError::Refused { hint, .. } => (*hint)?,
        };
        Some(hint.to_owned())
    }
}
