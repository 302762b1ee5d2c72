//! What a decoder is: its sizes, its layers, its ropes.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::published;
use crate::diagnosis::{Blame, Diagnosis};
use crate::ops::Activation;
use crate::outside::{self, JsonError};

/// The decoder families.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "clap", derive(clap::ValueEnum))]
pub enum Family {
    Gemma3,
    Llama,
    Qwen3,
}

impl Family {
    pub fn name(self) -> &'static str {
        match self {
            Family::Gemma3 => "gemma3",
            Family::Llama => "llama",
            Family::Qwen3 => "qwen3",
        }
    }
}

/// A decoder, described.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub family: Family,
    pub hidden_size: usize,
    pub intermediate_size: usize,
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Rows of the embedding table; a tokenizer may know fewer.
    pub vocab_size: usize,
    pub max_position_embeddings: usize,
    pub rms_norm_eps: f32,
    pub activation: Activation,
    /// What attention scores are multiplied by.
    pub attention_scale: f32,
    /// Whether rows also see those after them, as in encoders made of decoders; windows then reach as far ahead as back.
    pub both_ways: bool,
    pub tied_embeddings: bool,
    pub layers: Vec<Layer>,
    pub full_rope: RopeConfig,
    pub sliding_rope: RopeConfig,
    /// From `config.json`; a checkpoint's generation_config.json goes before it.
    pub eos_ids: Vec<u32>,
    pub bos_id: Option<u32>,
}

/// How far a layer sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layer {
    Full,
    /// A row sees this many positions, its own included.
    Sliding(usize),
}

/// Rotary position embedding: a base and how its frequencies are stretched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    pub theta: f64,
    pub scaling: RopeScaling,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    None,
    Linear { factor: f64 },
    Llama3 { factor: f64, low_frequency: f64, high_frequency: f64, original_positions: f64 },
}

#[derive(Debug, Error)]
pub enum ConfigError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} is not a model's config: {source}")]
    Json { path: PathBuf, source: JsonError },
    #[error("{path}: `{field}` is {value}, which wardround cannot run; {supported}")]
    Unsupported { path: PathBuf, field: String, value: String, supported: String },
    #[error("{path}: `{field}` is missing")]
    Missing { path: PathBuf, field: &'static str },
    #[error("{path}: {problem}")]
    Inconsistent { path: PathBuf, problem: String },
}

impl Diagnosis for ConfigError {
    fn blame(&self) -> Blame {
        Blame::Artefact
    }
}

/// One id or several, as both are published.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum Ids {
    One(u32),
    Many(Vec<u32>),
}

impl Ids {
    pub fn to_vec(&self) -> Vec<u32> {
        match self {
            Ids::One(id) => vec![*id],
            Ids::Many(ids) => ids.clone(),
        }
    }
}

impl Config {
    /// Reads and checks `config.json`.
    ///
    /// # Errors
    /// When the file cannot be read, or describes a model that the decoder cannot run: the field and its value are named.
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        Config::from_json(json(path)?, path)
    }

    /// The same, where rows may also see those after them.
    pub fn read_encoder(path: &Path) -> Result<Config, ConfigError> {
        published::resolve(json(path)?, path)
    }

    /// `path` only names the file in errors.
    pub fn from_json(value: Value, path: &Path) -> Result<Config, ConfigError> {
        let config = published::resolve(value, path)?;
        match config.both_ways {
            false => Ok(config),
            true => Err(ConfigError::Unsupported {
                path: path.to_owned(),
                field: "use_bidirectional_attention".to_owned(),
                value: "true".to_owned(),
                supported: "a model that writes text has false".to_owned(),
            }),
        }
    }

    pub fn layer_count(&self) -> usize {
        self.layers.len()
    }
}

fn json(path: &Path) -> Result<Value, ConfigError> {
    outside::json(path).map_err(|error| match error {
        JsonError::Read(source) => ConfigError::Read { path: path.to_owned(), source },
        source => ConfigError::Json { path: path.to_owned(), source },
    })
}
