//! The forward pass: rows of tokens in, logits of chosen rows out.

use super::config::Config;
use crate::ops::{
    AttentionShape, Backend, BranchNorms, HeadNorms, LayerPages, Numbers, OpsError, PageShape,
    Precision, Rows, StepLimits,
};

/// A decoder's weights. `None` marks what a family does not have.
#[derive(Debug)]
pub struct Decoder<B: Backend> {
    pub config: Config,
    pub precision: Precision,
    /// `[vocabulary, hidden]`; also the head where that is tied.
    pub(super) embedding: B::Matrix,
    pub(super) embedding_scale: f32,
    pub(super) layers: Vec<LayerWeights<B>>,
    pub(super) final_norm: B::Vector,
    pub(super) head: Option<B::Matrix>,
    /// What of the files contradicts their config, and what was made of it.
    pub warnings: Vec<String>,
    pub(super) full_rope: B::Rope,
    pub(super) sliding_rope: B::Rope,
    /// Of layers that are not turned, if there are some.
    pub(super) still_rope: Option<B::Rope>,
}

#[derive(Debug)]
pub(super) struct LayerWeights<B: Backend> {
    /// `None`: the layer sees every position before it.
    pub window: Option<usize>,
    pub is_turned: bool,
    pub input_norm: B::Vector,
    /// `[(heads + 2 · kv_heads) · head_dim, hidden]`.
    pub qkv: B::Matrix,
    pub head_norms: Option<HeadNorms<B::Vector>>,
    /// `[hidden, heads · head_dim]`.
    pub output: B::Matrix,
    pub attention_norm: Option<B::Vector>,
    pub feed_forward_input_norm: B::Vector,
    /// `[2 · intermediate, hidden]`.
    pub gate_up: B::Matrix,
    /// `[hidden, intermediate]`.
    pub down: B::Matrix,
    pub feed_forward_norm: Option<B::Vector>,
}

/// What a step is computed in, kept between steps so that none allocates.
#[derive(Debug)]
pub struct Scratch<B: Backend> {
    pub(super) stage: B::Stage,
    activations: Activations<B>,
    /// `[logit rows, vocabulary]`.
    logits: B::Buffer,
}

/// The activations of a step.
#[derive(Debug)]
struct Activations<B: Backend> {
    /// `[rows, hidden]`.
    residual: B::Buffer,
    normed: B::Buffer,
    branch: B::Buffer,
    /// `[rows, (heads + 2 · kv_heads) · head_dim]`.
    qkv: B::Buffer,
    /// `[rows, heads · head_dim]`.
    queries: B::Buffer,
    attended: B::Buffer,
    /// `[rows, 2 · intermediate]`, and `[rows, intermediate]`.
    gate_up: B::Buffer,
    gated: B::Buffer,
}

/// Of each activation, in that order, the numbers a row and how they are kept.
pub(super) fn widths(config: &Config) -> [(usize, Numbers); 8] {
    let Config { hidden_size: hidden, intermediate_size: inner, heads, head_dim, .. } = *config;
    [
        (hidden, Numbers::Wide),
        (hidden, Numbers::Narrow),
        (hidden, Numbers::Wide),
        ((heads + 2 * config.kv_heads) * head_dim, Numbers::Wide),
        // Tensor cores take heads of whole multiples of 32.
        (heads * head_dim.next_multiple_of(32), Numbers::Narrow),
        (heads * head_dim, Numbers::Narrow),
        (2 * inner, Numbers::Ungated),
        (inner, Numbers::Narrow),
    ]
}

impl<B: Backend> Scratch<B> {
    pub fn new(ops: &B, config: &Config, limits: StepLimits) -> Result<Scratch<B>, OpsError> {
        let stage = ops.stage(config.page_shape(), config.heads, limits)?;
        let [residual, normed, branch, qkv, queries, attended, gate_up, gated] =
            widths(config).map(|(width, numbers)| ops.buffer(limits.rows, width, numbers));
        Ok(Scratch {
            stage,
            activations: Activations {
                residual: residual?,
                normed: normed?,
                branch: branch?,
                qkv: qkv?,
                queries: queries?,
                attended: attended?,
                gate_up: gate_up?,
                gated: gated?,
            },
            logits: ops.buffer(limits.logit_rows, config.vocab_size, Numbers::Wide)?,
        })
    }

    /// The logits of the first `rows` rows that gave some, and what a draw from them passes through.
    pub fn logits(&mut self) -> (&mut B::Buffer, &mut B::Stage) {
        (&mut self.logits, &mut self.stage)
    }
}

impl Config {
    /// What a page of its keys and values holds.
    pub fn page_shape(&self) -> PageShape {
        PageShape { layers: self.layer_count(), kv_heads: self.kv_heads, head_dim: self.head_dim }
    }
}

impl<B: Backend> Decoder<B> {
    /// Runs `rows`, writes their keys and values to `pages`, and leaves the logits of `logit_rows` in
    /// `scratch`, `[logit_rows, vocabulary]`.
    pub fn forward(
        &self,
        ops: &B,
        rows: Rows<'_>,
        logit_rows: &[usize],
        pages: &mut B::Pages,
        scratch: &mut Scratch<B>,
    ) {
        let Scratch { stage, activations, logits } = scratch;
        let epsilon = self.config.rms_norm_eps;
        ops.compute(rows, logit_rows, stage, |step| {
            let Activations { residual, normed, .. } = &mut *activations;
            ops.embed(&self.embedding, step, self.embedding_scale, residual);
            if let Some(first) = self.layers.first() {
                ops.rms_norm(residual, &first.input_norm, epsilon, normed);
            }
            for index in 0..self.layers.len() {
                self.layer(ops, index, step, pages, activations);
            }
            let Activations { residual, normed, .. } = &mut *activations;
            ops.gather_norm(residual, step, &self.final_norm, epsilon, normed);
            let head = self.head.as_ref().unwrap_or(&self.embedding);
            ops.matmul(normed, head, logits);
        });
    }

    /// Attention and feed-forward layer, each added to the residual. What comes normed by this layer's input norm goes normed by that of
    /// the next.
    fn layer(
        &self,
        ops: &B,
        index: usize,
        step: B::Step<'_>,
        pages: &mut B::Pages,
        activations: &mut Activations<B>,
    ) {
        let Activations { residual, normed, branch, qkv, queries, attended, gate_up, gated } =
            activations;
        let (layer, next) = (&self.layers[index], self.layers.get(index + 1));
        let Config { rms_norm_eps: epsilon, activation, heads, attention_scale, .. } = self.config;
        let rope = match (&self.still_rope, layer.window) {
            (Some(still), _) if !layer.is_turned => still,
            (_, None) => &self.full_rope,
            (_, Some(_)) => &self.sliding_rope,
        };
        let shape = AttentionShape {
            heads,
            scale: attention_scale,
            window: layer.window,
            both_ways: false,
        };

        ops.matmul(normed, &layer.qkv, qkv);
        let written = LayerPages { pages: &mut *pages, layer: index };
        ops.rotate_and_store(qkv, queries, layer.head_norms.as_ref(), rope, step, written);
        ops.attention(queries, shape, step, LayerPages { pages: &*pages, layer: index }, attended);
        if next.is_none() {
            ops.keep_logit_rows(step, [residual, attended]);
        }
        ops.matmul(attended, &layer.output, branch);
        let (post, input_norm) = (&layer.attention_norm, &layer.feed_forward_input_norm);
        let norms = BranchNorms { post: post.as_ref(), next: Some(input_norm), epsilon };
        ops.add_norm(residual, branch, norms, normed);

        ops.matmul_gated(normed, &layer.gate_up, activation, gate_up, gated);
        ops.matmul(gated, &layer.down, branch);
        let (post, input_norm) = (&layer.feed_forward_norm, next.map(|next| &next.input_norm));
        let norms = BranchNorms { post: post.as_ref(), next: input_norm, epsilon };
        ops.add_norm(residual, branch, norms, normed);
    }
}
