//! DeBERTa, first version: attention that sees content and relative position apart (arXiv:2006.03654, §3.1).
//!
//! candle-transformers has the second version alone, whose positions, projections and norms differ.

use candle_core::{D, Device, Result, Tensor};
use candle_nn::ops::softmax_last_dim;
use candle_nn::{
    LayerNorm, Linear, Module, VarBuilder, embedding, layer_norm, linear, linear_no_bias,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::check_heads;
use crate::encoder::EncoderError;
use crate::encoder::folder::{CONFIG, Folder};

/// What config.json says of the shape; the rest is held against what is computed here by [`Config::read`].
#[derive(Deserialize)]
pub(super) struct Config {
    pub(super) vocab_size: usize,
    pub(super) hidden_size: usize,
    num_attention_heads: usize,
    intermediate_size: usize,
    pub(super) max_position_embeddings: usize,
    layer_norm_eps: f64,
    #[serde(default)]
    max_relative_positions: i64,
}

impl Config {
    /// # Errors
    /// The checkpoint is computed otherwise than DeBERTa's published first versions are.
    pub(super) fn read(
        folder: &Folder,
        mut config: Value,
    ) -> std::result::Result<Self, EncoderError> {
        // One string in published files, a list in what transformers writes.
        if let Some(kinds) = config["pos_att_type"].as_array() {
            let kinds: Vec<&str> = kinds.iter().filter_map(Value::as_str).collect();
            config["pos_att_type"] = kinds.join("|").into();
        }
        let fixed = [
            ("hidden_act", json!("gelu")),
            ("relative_attention", json!(true)),
            ("position_biased_input", json!(false)),
            ("type_vocab_size", json!(0)),
            ("pos_att_type", json!("c2p|p2c")),
        ];
        for (field, expected) in fixed {
            folder.expect(&config, field, expected)?;
        }
        serde_json::from_value(config).map_err(|error| folder.unreadable(CONFIG, &error))
    }

    /// How far two tokens can be apart before it makes no difference any more.
    fn reach(&self) -> usize {
        match usize::try_from(self.max_relative_positions) {
            Ok(reach) if reach > 0 => reach,
            _ => self.max_position_embeddings,
        }
    }
}

/// The first layers of a checkpoint, in f32.
pub(super) struct Deberta {
    /// `[vocabulary, width]`
    words: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
    reach: usize,
}

impl Deberta {
    pub(super) fn load(weights: VarBuilder, config: &Config, layers: usize) -> Result<Self> {
        let width = config.hidden_size;
        let embeddings = weights.pp("embeddings");
        let words = embedding(config.vocab_size, width, embeddings.pp("word_embeddings"))?;
        let encoder = weights.pp("encoder");
        let relative = embedding(2 * config.reach(), width, encoder.pp("rel_embeddings"))?;
        let layer = |at: usize| {
            Layer::load(encoder.pp(format!("layer.{at}")), config, relative.embeddings())
        };
        Ok(Self {
            words: words.embeddings().clone(),
            norm: layer_norm(width, config.layer_norm_eps, embeddings.pp("LayerNorm"))?,
            layers: (0..layers).map(layer).collect::<Result<_>>()?,
            reach: config.reach(),
        })
    }

    /// The states of one text after the last layer that was loaded, `[tokens, width]`.
    pub(super) fn states(&self, ids: &[u32]) -> Result<Tensor> {
        let ids = Tensor::new(ids, &Device::Cpu)?;
        let distances = Distances::between(ids.elem_count(), self.reach)?;
        let mut states = self.norm.forward(&self.words.index_select(&ids, 0)?)?;
        for layer in &self.layers {
            states = layer.forward(&states, &distances)?;
        }
        Ok(states)
    }
}

/// Which row of the relative positions belongs to each query and key.
struct Distances {
    /// The first row in use.
    first: usize,
    /// How many rows are.
    count: usize,
    /// `[queries, keys]`, counted from the first row in use.
    rows: Tensor,
}

impl Distances {
    /// Row `span + i - j` for query i and key j, held inside the rows in use.
    fn between(tokens: usize, reach: usize) -> Result<Self> {
        let span = tokens.min(reach);
        let row = |query: usize, key: usize| {
            let row = (span + query).saturating_sub(key).min(2 * span - 1);
            row as u32
        };
        let rows: Vec<u32> =
            (0..tokens).flat_map(|query| (0..tokens).map(move |key| row(query, key))).collect();
        Ok(Self {
            first: reach - span,
            count: 2 * span,
            rows: Tensor::from_vec(rows, (tokens, tokens), &Device::Cpu)?,
        })
    }
}

struct Layer {
    attention: Attention,
    attended: Linear,
    attended_norm: LayerNorm,
    widen: Linear,
    narrow: Linear,
    norm: LayerNorm,
}

impl Layer {
    fn load(weights: VarBuilder, config: &Config, relative: &Tensor) -> Result<Self> {
        let (width, inner) = (config.hidden_size, config.intermediate_size);
        let norm =
            |weights: VarBuilder| layer_norm(width, config.layer_norm_eps, weights.pp("LayerNorm"));
        let attention = weights.pp("attention");
        let (attended, output) = (attention.pp("output"), weights.pp("output"));
        Ok(Self {
            attention: Attention::load(attention.pp("self"), config, relative)?,
            attended: linear(width, width, attended.pp("dense"))?,
            attended_norm: norm(attended)?,
            widen: linear(width, inner, weights.pp("intermediate.dense"))?,
            narrow: linear(inner, width, output.pp("dense"))?,
            norm: norm(output)?,
        })
    }

    fn forward(&self, states: &Tensor, distances: &Distances) -> Result<Tensor> {
        let attended = self.attention.forward(states, distances)?;
        let attended = self.attended.forward(&attended)?;
        let states = self.attended_norm.forward(&(attended + states)?)?;
        let inner = self.widen.forward(&states)?.gelu_erf()?;
        self.norm.forward(&(self.narrow.forward(&inner)? + states)?)
    }
}

struct Attention {
    /// Queries, keys and values of a head side by side, head by head.
    projection: Linear,
    /// `[heads, 1, head width]`
    query_bias: Tensor,
    value_bias: Tensor,
    /// The layer's own view of the relative positions, `[heads, rows, head width]`: they are the same for every text.
    position_keys: Tensor,
    /// Scaled already.
    position_queries: Tensor,
    heads: usize,
    /// sqrt(3 head width): three products are added up, equation (4).
    scale: f64,
}

impl Attention {
    fn load(weights: VarBuilder, config: &Config, relative: &Tensor) -> Result<Self> {
        let (width, heads) = (config.hidden_size, config.num_attention_heads);
        check_heads(width, heads)?;
        let scale = (3.0 * (width / heads) as f64).sqrt();
        let bias = |name: &str| weights.get(width, name)?.reshape((heads, 1, width / heads));
        let keys = linear_no_bias(width, width, weights.pp("pos_proj"))?;
        let queries = linear(width, width, weights.pp("pos_q_proj"))?;
        Ok(Self {
            projection: linear_no_bias(width, 3 * width, weights.pp("in_proj"))?,
            query_bias: bias("q_bias")?,
            value_bias: bias("v_bias")?,
            position_keys: by_head(&keys.forward(relative)?, heads)?,
            position_queries: (by_head(&queries.forward(relative)?, heads)? / scale)?,
            heads,
            scale,
        })
    }

    /// `[tokens, width]` to the same: equation (4), content to content, content to position and position to content.
    fn forward(&self, states: &Tensor, distances: &Distances) -> Result<Tensor> {
        let projected = by_head(&self.projection.forward(states)?, self.heads)?;
        let (heads, tokens, three) = projected.dims3()?;
        let part = |at: usize| projected.narrow(D::Minus1, at * three / 3, three / 3);
        let queries = (part(0)?.broadcast_add(&self.query_bias)? / self.scale)?;
        let keys = part(1)?.contiguous()?;
        let values = part(2)?.broadcast_add(&self.value_bias)?;

        let near = |positions: &Tensor| {
            let rows = positions.narrow(1, distances.first, distances.count)?;
            rows.transpose(1, 2)?.contiguous()
        };
        let every_head = |rows: &Tensor| rows.expand((heads, tokens, tokens))?.contiguous();
        let content = queries.matmul(&keys.transpose(1, 2)?.contiguous()?)?;
        let to_position = queries
            .matmul(&near(&self.position_keys)?)?
            .gather(&every_head(&distances.rows)?, 2)?;
        // A row for each key here, so both ways turned.
        let from_position = keys
            .matmul(&near(&self.position_queries)?)?
            .gather(&every_head(&distances.rows.t()?)?, 2)?
            .transpose(1, 2)?;
        let scores = ((content + to_position)? + from_position)?;
        let attended = softmax_last_dim(&scores)?.matmul(&values)?;
        attended.transpose(0, 1)?.contiguous()?.flatten_from(1)
    }
}

/// `[rows, heads * n]` to `[heads, rows, n]`.
fn by_head(states: &Tensor, heads: usize) -> Result<Tensor> {
    let (rows, width) = states.dims2()?;
    states.reshape((rows, heads, width / heads))?.transpose(0, 1)?.contiguous()
}
