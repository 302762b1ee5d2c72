//! One decoder for all families: a description, weights, and a forward pass over the rows of a step.
//!
//! It has no state of its own: keys and values lie in pages that the engine owns.

mod attention;
mod bert;
mod cache;
pub mod config;
mod cost;
mod decoder;
mod delta_rule;
pub(crate) mod families;
mod inputs;
mod layer;
mod logits;
mod memory;
mod published;
mod rope;
mod scratch;
mod weights;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use crate::outside::available_memory;
pub use bert::{Bert, BertConfig, BertScratch};
pub use cache::Cache;
pub use config::{Config, ConfigError};
pub use cost::CostModel;
pub use decoder::Decoder;
pub use families::{Family, Shape};
pub use logits::{Probe, best, compute_logits};
pub use memory::{Footprint, peak_memory};
pub use scratch::Scratch;
pub use weights::precision_of;

use crate::fault::faults;
use crate::ops::checkpoint::CheckpointError;
use crate::ops::{OpsError, Quantisation, StoredType};

faults! {
    /// Why a model cannot be loaded.
    #[derive(Debug, Error)]
    pub enum ModelError {
        #[error(transparent)]
        Config(error: #[from] ConfigError) => Artefact;
        #[error(transparent)]
        Checkpoint(error: #[from] CheckpointError) => Artefact, error.hint();
        #[error("{path}: no embedding table under any known prefix ({tried})", path = path.display())]
        Prefix { path: PathBuf, tried: String } => Artefact;
        #[error("`{0}` is no type that weights are kept as; known: auto, f32, bf16")]
        StoredType(problem: String) => Usage;
        #[error(transparent)]
        Ops(error: #[from] OpsError) => error.blame(), error.hint();
    }
}

/// How weights are to be kept, as it is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WantedPrecision {
    pub dtype: WantedType,
    pub quantisation: Quantisation,
    /// Of keys and values. Left open it is bf16, as published models were made, but where the CPU has weights of f32.
    pub kv: WantedType,
}

/// The type that numbers are kept as: asked for, or as suits; weights as the checkpoint has them (f16 is widened to f32).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum WantedType {
    #[default]
    Auto,
    #[serde(untagged)]
    Exactly(StoredType),
}

impl std::str::FromStr for WantedType {
    type Err = ModelError;

    fn from_str(text: &str) -> Result<WantedType, ModelError> {
        match text {
            "auto" => Ok(WantedType::Auto),
            "f32" => Ok(WantedType::Exactly(StoredType::F32)),
            "bf16" => Ok(WantedType::Exactly(StoredType::Bf16)),
            other => Err(ModelError::StoredType(other.to_owned())),
        }
    }
}
