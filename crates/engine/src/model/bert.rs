//! Encoders of BERT's shape: a description, weights, and a forward pass over whole texts, packed without padding.

use serde::Deserialize;

use crate::ops::{
    AttentionShape, Biased, EncoderBackend, LayerNorm, LayerPages, Numbers, OpsError, PageShape,
    Precision, Rotation, Rows, StepLimits, StoredType, TextTables, checkpoint::RawTensor,
};

/// `config.json` of a BERT encoder.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct BertConfig {
    /// Rows of the token table.
    pub vocab_size: usize,
    pub hidden_size: usize,
    pub num_hidden_layers: usize,
    /// Heads of a layer, each with as many keys and values.
    pub num_attention_heads: usize,
    /// Numbers between the two products of a feed-forward layer.
    pub intermediate_size: usize,
    /// Rows of the position table: no text is longer.
    pub max_position_embeddings: usize,
    /// Rows of the table of segments.
    #[serde(default = "two")]
    pub type_vocab_size: usize,
    /// What is added to a variance.
    #[serde(default = "epsilon")]
    pub layer_norm_eps: f32,
}

fn two() -> usize {
    2
}

fn epsilon() -> f32 {
    1e-12
}

/// Reads a tensor by its published name: row-major, of this shape.
pub type Read<'a, E> = dyn Fn(&str, &[usize]) -> Result<Vec<f32>, E> + 'a;

#[derive(Debug)]
pub struct Bert<B: EncoderBackend> {
    pub config: BertConfig,
    tables: TextTables<B>,
    norm: LayerNorm<B::Vector>,
    layers: Vec<Layer<B>>,
    /// Positions are in the embeddings: no head is turned.
    rope: B::Rope,
}

#[derive(Debug)]
struct Layer<B: EncoderBackend> {
    /// `[3 · hidden, hidden]`: queries, keys, values.
    qkv: Linear<B>,
    /// `[hidden, hidden]`.
    output: Linear<B>,
    attention_norm: LayerNorm<B::Vector>,
    /// `[intermediate, hidden]`.
    up: Linear<B>,
    /// `[hidden, intermediate]`.
    down: Linear<B>,
    norm: LayerNorm<B::Vector>,
}

#[derive(Debug)]
struct Linear<B: EncoderBackend> {
    weight: B::Matrix,
    bias: B::Vector,
}

/// What steps are computed in.
#[derive(Debug)]
pub struct BertScratch<B: EncoderBackend> {
    stage: B::Stage,
    /// Of one layer: all take turns in it.
    pages: B::Pages,
    /// `[rows, hidden]`.
    residual: B::Buffer,
    normed: B::Buffer,
    branch: B::Buffer,
    /// `[rows, 3 · hidden]`.
    qkv: B::Buffer,
    queries: B::Buffer,
    attended: B::Buffer,
    /// `[rows, intermediate]`.
    up: B::Buffer,
    active: B::Buffer,
}

impl BertConfig {
    /// What is wrong with the sizes; `None`: nothing.
    pub fn problem(&self) -> Option<String> {
        let BertConfig { hidden_size, num_attention_heads, .. } = *self;
        let named = [
            ("vocab_size", self.vocab_size),
            ("hidden_size", hidden_size),
            ("num_attention_heads", num_attention_heads),
            ("intermediate_size", self.intermediate_size),
            ("max_position_embeddings", self.max_position_embeddings),
            ("type_vocab_size", self.type_vocab_size),
        ];
        // What no machine holds is refused before it is asked for.
        if let Some((name, size)) = named.iter().find(|(_, size)| !(1..1 << 24).contains(size)) {
            return Some(format!("`{name}` is {size}"));
        }
        if self.num_hidden_layers > 1 << 10 {
            return Some(format!("`num_hidden_layers` is {}", self.num_hidden_layers));
        }
        let heads_fit = hidden_size.is_multiple_of(num_attention_heads)
            && (hidden_size / num_attention_heads).is_multiple_of(2);
        (!heads_fit).then(|| {
            format!("{num_attention_heads} heads of an even size do not make {hidden_size} numbers")
        })
    }

    /// Multiply-adds of the linear layers a token.
    pub(super) fn multiply_adds(&self) -> u64 {
        let (hidden, inner) = (self.hidden_size as u64, self.intermediate_size as u64);
        self.num_hidden_layers as u64 * (4 * hidden * hidden + 2 * hidden * inner)
    }

    pub(super) fn page_shape(&self) -> PageShape {
        PageShape {
            layers: 1,
            kv_heads: self.num_attention_heads,
            head_dim: self.hidden_size / self.num_attention_heads,
        }
    }
}

impl<B: EncoderBackend> BertScratch<B> {
    /// For steps of at most `rows` rows and `pages` pages.
    pub fn new(ops: &B, config: &BertConfig, rows: usize, pages: usize) -> Result<Self, OpsError> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let shape = config.page_shape();
        let positions = config.max_position_embeddings;
        let limits = StepLimits { rows, logit_rows: rows, positions };
        let wide = |width| ops.buffer(rows, width, Numbers::Wide);
        let narrow = |width| ops.buffer(rows, width, Numbers::Narrow);
        Ok(BertScratch {
            stage: ops.stage(shape, shape.kv_heads, limits)?,
            pages: ops.pages(shape, StoredType::F32, pages)?,
            residual: wide(hidden)?,
            normed: narrow(hidden)?,
            branch: wide(hidden)?,
            qkv: wide(3 * hidden)?,
            queries: narrow(shape.kv_heads * shape.head_dim.next_multiple_of(32))?,
            attended: narrow(hidden)?,
            up: wide(inner)?,
            active: narrow(inner)?,
        })
    }
}

impl<B: EncoderBackend> Bert<B> {
    pub fn load<E: From<OpsError>>(
        ops: &B,
        config: BertConfig,
        read: &Read<'_, E>,
        precision: Precision,
    ) -> Result<Bert<B>, E> {
        let loader = Loader { ops, read, precision };
        let BertConfig { hidden_size: hidden, intermediate_size: inner, .. } = config;
        let table = |name: &str, rows: usize| {
            read(&format!("embeddings.{name}_embeddings.weight"), &[rows, hidden])
        };
        let words = table("word", config.vocab_size)?;
        let positions = config.max_position_embeddings;
        let tables = TextTables {
            words: loader.matrix(&[words], hidden)?,
            positions: ops.vector(table("position", positions)?)?,
            segments: ops.vector(table("token_type", config.type_vocab_size)?)?,
        };
        let norm = |name: &str| loader.norm(name, hidden, config.layer_norm_eps);
        let layer = |index: usize| {
            let name = |part: &str| format!("encoder.layer.{index}.{part}");
            let qkv = ["query", "key", "value"].map(|part| name(&format!("attention.self.{part}")));
            Ok(Layer {
                qkv: loader.linear(&qkv, [hidden, hidden])?,
                output: loader.linear(&[name("attention.output.dense")], [hidden, hidden])?,
                attention_norm: norm(&name("attention.output.LayerNorm"))?,
                up: loader.linear(&[name("intermediate.dense")], [inner, hidden])?,
                down: loader.linear(&[name("output.dense")], [hidden, inner])?,
                norm: norm(&name("output.LayerNorm"))?,
            })
        };
        let layers = (0..config.num_hidden_layers).map(layer).collect::<Result<_, E>>()?;
        let head_dim = config.page_shape().head_dim;
        Ok(Bert {
            tables,
            norm: norm("embeddings.LayerNorm")?,
            layers,
            // An angle of zero turns nothing.
            rope: ops.rope(&Rotation::by(vec![0.0; head_dim / 2]), positions)?,
            config,
        })
    }

    /// The last layer's states, `[rows, hidden]`. A step holds whole texts, and the segment of each token.
    pub fn forward(
        &self,
        ops: &B,
        rows: Rows<'_>,
        scratch: &mut BertScratch<B>,
    ) -> Result<Vec<f32>, OpsError> {
        let BertScratch {
            stage,
            pages,
            residual,
            normed,
            branch,
            qkv,
            queries,
            attended,
            up,
            active,
        } = scratch;
        let shape = AttentionShape {
            heads: self.config.num_attention_heads,
            scale: libm::pow(self.config.page_shape().head_dim as f64, -0.5) as f32,
            window: None,
            both_ways: true,
        };
        ops.compute(rows, &[], stage, |step| {
            ops.embed_text(&self.tables, step, residual);
            ops.layer_norm(residual, None, &self.norm, normed);
            for layer in &self.layers {
                ops.matmul(normed, &layer.qkv.weight, qkv);
                ops.add_bias(qkv, &layer.qkv.bias);
                let written = LayerPages { pages: &mut *pages, layer: 0 };
                ops.rotate_and_store(qkv, queries, None, &self.rope, step, written);
                let read = LayerPages { pages: &*pages, layer: 0 };
                ops.attention(queries, shape, step, read, attended);
                ops.matmul(attended, &layer.output.weight, branch);
                let biased = Biased { products: &*branch, bias: &layer.output.bias };
                ops.layer_norm(residual, Some(biased), &layer.attention_norm, normed);
                ops.matmul(normed, &layer.up.weight, up);
                ops.gelu(Biased { products: &*up, bias: &layer.up.bias }, active);
                ops.matmul(active, &layer.down.weight, branch);
                let biased = Biased { products: &*branch, bias: &layer.down.bias };
                ops.layer_norm(residual, Some(biased), &layer.norm, normed);
            }
        });
        ops.read(residual, rows.len())
    }
}

struct Loader<'a, B, E> {
    ops: &'a B,
    read: &'a Read<'a, E>,
    precision: Precision,
}

impl<B: EncoderBackend, E: From<OpsError>> Loader<'_, B, E> {
    /// Parts `[_, inputs]`, stacked.
    fn matrix(&self, parts: &[Vec<f32>], inputs: usize) -> Result<B::Matrix, E> {
        let parts: Vec<RawTensor<'_>> =
            parts.iter().map(|part| RawTensor::from_f32s(part)).collect();
        Ok(self.ops.pack(&parts, inputs, self.precision)?)
    }

    /// Layers of one shape, stacked.
    fn linear(&self, names: &[String], shape: [usize; 2]) -> Result<Linear<B>, E> {
        let read = |what: &str, shape: &[usize]| -> Result<Vec<Vec<f32>>, E> {
            names.iter().map(|name| (self.read)(&format!("{name}.{what}"), shape)).collect()
        };
        Ok(Linear {
            weight: self.matrix(&read("weight", &shape)?, shape[1])?,
            bias: self.ops.vector(read("bias", &shape[..1])?.concat())?,
        })
    }

    fn norm(&self, name: &str, width: usize, epsilon: f32) -> Result<LayerNorm<B::Vector>, E> {
        let read = |what: &str| (self.read)(&format!("{name}.{what}"), &[width]);
        Ok(LayerNorm {
            weight: self.ops.vector(read("weight")?)?,
            bias: self.ops.vector(read("bias")?)?,
            epsilon,
        })
    }
}
