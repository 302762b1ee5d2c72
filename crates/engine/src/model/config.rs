//! What a decoder is: its sizes, its layers, its ropes.

use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;
use thiserror::Error;

use super::families::Family;
use super::published;
use crate::fault::faults;
use crate::ops::{Activation, DeltaShape, QueryGrowth};
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
    /// The same, of layers that see all positions.
    pub full_head_dim: usize,
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
    /// Where some layers are of the gated delta rule.
    pub delta: Option<DeltaLayers>,
    /// How many numbers of a head its rope turns.
    pub turned_dim: usize,
    /// Of layers that see all positions.
    pub full_rope: RopeConfig,
    /// Of layers with a window.
    pub sliding_rope: RopeConfig,
    /// Layers that no rope turns.
    pub unturned: Vec<usize>,
    pub query_growth: Option<QueryGrowth>,
    /// Layers at the end that see the keys and values of the last layer before them of their kind.
    pub sharing_layers: usize,
    /// How many times as wide the feed-forward layers of those are.
    pub sharing_width: usize,
    /// Numbers of a token's embedding for each layer; 0: it has none.
    pub layer_input: usize,
    /// Logits are pressed between this and its negative.
    pub logit_cap: Option<f32>,
    /// From `config.json`; a checkpoint's generation_config.json goes before it.
    pub eos_ids: Vec<u32>,
}

/// Layers with a state of a fixed size in place of keys and values.
#[derive(Clone, Debug, PartialEq)]
pub struct DeltaLayers {
    /// Which of all layers they are.
    pub layers: Vec<bool>,
    pub shape: DeltaShape,
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
    /// Only so great a part of the pairs is turned, the first ones, and each frequency is divided by the factor.
    Proportional {
        part: f64,
        factor: f64,
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

/// Names of tensors: of what a token gives each layer, and of what a layer's sum is multiplied by.
pub(super) const LAYER_TABLE: &str = "embed_tokens_per_layer";
pub(super) const LAYER_PROJECTION: &str = "per_layer_model_projection";
pub(super) const LAYER_NORM: &str = "per_layer_projection_norm";
pub(super) const LAYER_SCALE: &str = "layer_scalar";

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

    /// The sizes of a layer that is of the gated delta rule; `None`: it attends.
    pub fn delta_shape(&self, layer: usize) -> Option<DeltaShape> {
        self.delta.as_ref().filter(|delta| delta.layers[layer]).map(|delta| delta.shape)
    }

    /// How many layers before this one are of its kind: where its keys and values, or its states, lie.
    pub(super) fn place(&self, layer: usize) -> usize {
        let kind = |layer| self.delta_shape(layer).is_some();
        (0..layer).filter(|before| kind(*before) == kind(layer)).count()
    }

    /// The layers that attend.
    pub fn attending(&self) -> impl Iterator<Item = usize> {
        (0..self.layer_count()).filter(|layer| self.delta_shape(*layer).is_none())
    }

    /// The decoder's tensors: their published names, without what stands before and behind all of them, and their shapes. A head of its
    /// own is not among them.
    pub fn tensors(&self) -> Vec<(String, Vec<usize>)> {
        let (hidden, small) = (self.hidden_size, self.layer_input);
        let traits = self.family.traits();
        let norms = &traits.layer_norms;
        let mut tensors = vec![("embed_tokens".to_owned(), vec![self.vocab_size, hidden])];
        if small > 0 {
            let all = self.layer_count() * small;
            tensors.push((LAYER_TABLE.to_owned(), vec![self.vocab_size, all]));
            tensors.push((LAYER_PROJECTION.to_owned(), vec![all, hidden]));
            tensors.push((LAYER_NORM.to_owned(), vec![small]));
        }
        for layer in 0..self.layer_count() {
            let (head_dim, inner) = (self.head_dim_of(layer), self.inner_of(layer));
            let (queries, keys) = (self.heads * head_dim, self.kv_heads * head_dim);
            let is_sharing = self.is_sharing(layer);
            let mut add = |name: &str, shape: &[usize]| {
                tensors.push((format!("layers.{layer}.{name}"), shape.to_vec()));
            };
            match self.delta_shape(layer) {
                Some(shape) => {
                    let (channels, heads, values) =
                        (shape.channels(), shape.value_heads, shape.values());
                    add("linear_attn.in_proj_qkv", &[channels, hidden]);
                    add("linear_attn.in_proj_z", &[values, hidden]);
                    add("linear_attn.in_proj_b", &[heads, hidden]);
                    add("linear_attn.in_proj_a", &[heads, hidden]);
                    add("linear_attn.conv1d", &[channels, 1, shape.taps]);
                    add("linear_attn.A_log", &[heads]);
                    add("linear_attn.dt_bias", &[heads]);
                    add("linear_attn.norm", &[shape.value_dim]);
                    add("linear_attn.out_proj", &[hidden, values]);
                }
                None => {
                    let gates = if traits.gates_heads { queries } else { 0 };
                    add("self_attn.q_proj", &[queries + gates, hidden]);
                    if !is_sharing {
                        add("self_attn.k_proj", &[keys, hidden]);
                        add("self_attn.v_proj", &[keys, hidden]);
                    }
                    add("self_attn.o_proj", &[hidden, queries]);
                }
            }
            add("mlp.gate_proj", &[inner, hidden]);
            add("mlp.up_proj", &[inner, hidden]);
            add("mlp.down_proj", &[hidden, inner]);
            add("input_layernorm", &[hidden]);
            let around = [norms.attention, Some(norms.feed_forward_input), norms.feed_forward];
            around.into_iter().flatten().for_each(|name| add(name, &[hidden]));
            if traits.norms_heads && self.delta_shape(layer).is_none() {
                add("self_attn.q_norm", &[head_dim]);
                if !is_sharing {
                    add("self_attn.k_norm", &[head_dim]);
                }
            }
            if traits.parts.scales_layers {
                add(LAYER_SCALE, &[1]);
            }
            if small > 0 {
                add("per_layer_input_gate", &[small, hidden]);
                add("per_layer_projection", &[hidden, small]);
                add("post_per_layer_input_norm", &[hidden]);
            }
        }
        tensors.push(("norm".to_owned(), vec![hidden]));
        tensors
    }
}

/// A tensor's name in its file, of one of [`Config::tensors`]: all but a few vectors are weights of something.
pub fn stored_name(name: &str) -> String {
    let is_bare = ["A_log", "dt_bias", LAYER_SCALE].iter().any(|end| name.ends_with(end));
    format!("{name}{}", if is_bare { "" } else { ".weight" })
}
