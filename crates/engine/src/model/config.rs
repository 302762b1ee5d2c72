//! What a decoder is: its sizes, its layers, its ropes.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::families::Family;
use super::published;
use crate::fault::faults;
use crate::ops::{Activation, QueryGrowth};
use crate::outside;

/// A decoder, described.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    pub family: Family,
    pub hidden_size: usize,
    /// Numbers between the products of a feed-forward layer.
    pub intermediate_size: usize,
    pub heads: usize,
    /// Heads of keys and values; each serves `heads / kv_heads` of queries.
    pub kv_heads: usize,
    pub head_dim: usize,
    /// Rows of the embedding table; a tokenizer may know fewer.
    pub vocab_size: usize,
    /// Positions that the model was trained for.
    pub max_position_embeddings: usize,
    /// What is added to a mean of squares.
    pub rms_norm_eps: f32,
    pub activation: Activation,
    pub attention_scale: f32,
    pub tied_embeddings: bool,
    /// Of each layer, how many positions a row sees, its own included; `None`: all before it.
    pub windows: Vec<Option<usize>>,
    /// Of layers that see all positions.
    pub full_rope: RopeConfig,
    /// Of layers with a window.
    pub sliding_rope: RopeConfig,
    /// Layers that no rope turns.
    pub unturned: Vec<usize>,
    pub query_growth: Option<QueryGrowth>,
    /// From `config.json`; a checkpoint's generation_config.json goes before it.
    pub eos_ids: Vec<u32>,
}

/// Rotary position embedding: a base and how its frequencies are stretched.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RopeConfig {
    /// Frequency `i` is `theta^(-2i / head_dim)`.
    pub theta: f64,
    pub scaling: RopeScaling,
}

/// How frequencies are stretched for contexts that are longer than those of the training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RopeScaling {
    None,
    /// Each is divided by the factor.
    Linear {
        factor: f64,
    },
    /// As Llama 3.1 does: long waves are divided by the factor, short ones stay, those between are mixed.
    Llama3 {
        factor: f64,
        /// Waves longer than `original_positions / low_frequency` are long.
        low_frequency: f64,
        /// Waves shorter than `original_positions / high_frequency` are short.
        high_frequency: f64,
        original_positions: f64,
    },
    /// Pairs that turn less than `slow` times over `original_positions` are divided by the factor, those that turn more than `fast` times
    /// stay, those between are mixed (Peng et al., YaRN, section 3.2).
    Yarn {
        factor: f64,
        fast: f64,
        slow: f64,
        original_positions: f64,
        /// Whether the first and the last pair between are whole numbers.
        truncates: bool,
        /// What turned queries and keys are multiplied by.
        magnitude: f64,
    },
}

faults! {
    /// Why a `config.json` describes no model that runs here.
    #[derive(Debug, Error)]
    pub enum ConfigError {
        #[error("{path}: {problem}")]
        Damaged { path: PathBuf, problem: String } => Artefact;
        #[error("{path}: `{field}` is {value}, which wardround cannot run; {supported}")]
        Unsupported { path: PathBuf, field: String, value: String, supported: String } => Artefact;
    }
}

impl ConfigError {
    /// Of any file that describes a model.
    pub(crate) fn damaged(path: &Path, problem: impl ToString) -> ConfigError {
        ConfigError::Damaged { path: path.to_owned(), problem: problem.to_string() }
    }
}

/// One id or several, as both are published.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged, expecting = "a token id is a whole number from 0, or there is a list of such")]
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
    pub fn read(path: &Path) -> Result<Config, ConfigError> {
        let damaged = |error: &dyn std::fmt::Display| ConfigError::damaged(path, error);
        let read = outside::json(path).map_err(|error| damaged(&error))?;
        Config::from_json(read.map_err(|error| damaged(&error))?, path)
    }

    /// `path` only names the file in errors.
    pub fn from_json(value: Value, path: &Path) -> Result<Config, ConfigError> {
        published::resolve(value, path)
    }

    pub fn layer_count(&self) -> usize {
        self.windows.len()
    }

    /// The decoder's tensors: their published names, without what stands before and behind all of them, and their shapes. A head of its
    /// own is not among them.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, head_dim, inner) = (self.hidden_size, self.head_dim, self.intermediate_size);
        let (queries, keys) = (self.heads * head_dim, self.kv_heads * head_dim);
        let traits = self.family.traits();
        let norms = &traits.layer_norms;
        let mut tensors = vec![("embed_tokens".to_owned(), vec![self.vocab_size, hidden])];
        for layer in 0..self.layer_count() {
            let mut add = |name: &str, shape: &[usize]| {
                tensors.push((format!("layers.{layer}.{name}"), shape.to_vec()));
            };
            add("self_attn.q_proj", &[queries, hidden]);
            add("self_attn.k_proj", &[keys, hidden]);
            add("self_attn.v_proj", &[keys, hidden]);
            add("self_attn.o_proj", &[hidden, queries]);
            add("mlp.gate_proj", &[inner, hidden]);
            add("mlp.up_proj", &[inner, hidden]);
            add("mlp.down_proj", &[hidden, inner]);
            add("input_layernorm", &[hidden]);
            let around = [norms.attention, Some(norms.feed_forward_input), norms.feed_forward];
            around.into_iter().flatten().for_each(|name| add(name, &[hidden]));
            if traits.norms_heads {
                add("self_attn.q_norm", &[head_dim]);
                add("self_attn.k_norm", &[head_dim]);
            }
        }
        tensors.push(("norm".to_owned(), vec![hidden]));
        tensors
    }
}
