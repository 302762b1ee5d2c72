//! The forward pass: rows of tokens in, logits of chosen rows out.

use super::config::Config;
use crate::ops::{
    AttentionShape, Backend, BranchNorms, HeadNorms, LayerPages, Machine, Numbers, OpsError,
    PageShape, Precision, Rows, StepLimits,
};

/// A decoder's weights. `None` marks what a family does not have.
#[derive(Debug)]
pub struct Decoder<B: Backend> {
    /// Its description.
    pub config: Config,
    pub(super) precision: Precision,
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
}

#[derive(Debug)]
pub(super) struct LayerWeights<B: Backend> {
    /// `None`: the layer sees every position before it.
    pub window: Option<usize>,
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
    activations: Activations<B::Buffer>,
    /// `[logit rows, vocabulary]`.
    logits: B::Buffer,
}

/// The activations of a step: their buffers, or of each the numbers a row and how they are kept.
#[derive(Debug)]
struct Activations<T> {
    /// `[rows, hidden]`.
    residual: T,
    normed: T,
    branch: T,
    /// `[rows, (heads + 2 · kv_heads) · head_dim]`.
    qkv: T,
    /// `[rows, heads · head_dim]`.
    queries: T,
    attended: T,
    /// `[rows, 2 · intermediate]`, and `[rows, intermediate]`.
    gate_up: T,
    gated: T,
}

impl<B: Backend> Scratch<B> {
    /// # Errors
    /// When the machine has no memory for it.
    pub fn new(ops: &B, config: &Config, limits: StepLimits) -> Result<Scratch<B>, OpsError> {
        let widths = Activations::of(config);
        let room = |(width, numbers)| ops.buffer(limits.rows, width, numbers);
        Ok(Scratch {
            stage: ops.stage(config.page_shape(), config.heads, limits)?,
            activations: Activations {
                residual: room(widths.residual)?,
                normed: room(widths.normed)?,
                branch: room(widths.branch)?,
                qkv: room(widths.qkv)?,
                queries: room(widths.queries)?,
                attended: room(widths.attended)?,
                gate_up: room(widths.gate_up)?,
                gated: room(widths.gated)?,
            },
            logits: ops.buffer(limits.logit_rows, config.vocab_size, Numbers::Wide)?,
        })
    }

    /// The logits of the first `rows` rows that gave some, and what a draw from them passes through.
    pub fn logits(&mut self) -> (&mut B::Buffer, &mut B::Stage) {
        (&mut self.logits, &mut self.stage)
    }
}

impl Activations<(usize, Numbers)> {
    fn of(config: &Config) -> Activations<(usize, Numbers)> {
        let (hidden, inner) = (config.hidden_size, config.intermediate_size);
        let (heads, head_dim) = (config.heads, config.head_dim);
        Activations {
            residual: (hidden, Numbers::Wide),
            normed: (hidden, Numbers::Narrow),
            branch: (hidden, Numbers::Wide),
            qkv: ((heads + 2 * config.kv_heads) * head_dim, Numbers::Wide),
            // Tensor cores take heads of whole multiples of 32.
            queries: (heads * head_dim.next_multiple_of(32), Numbers::Narrow),
            attended: (heads * head_dim, Numbers::Narrow),
            gate_up: (2 * inner, Numbers::Ungated),
            gated: (inner, Numbers::Narrow),
        }
    }

    fn all(&self) -> [(usize, Numbers); 8] {
        [
            self.residual,
            self.normed,
            self.branch,
            self.qkv,
            self.queries,
            self.attended,
            self.gate_up,
            self.gated,
        ]
    }
}

/// Bytes of the scratch of a decoder on `machine`.
pub(super) fn scratch_bytes(config: &Config, machine: Machine, limits: StepLimits) -> usize {
    let bytes = |(width, numbers)| machine.buffer_bytes(limits.rows, width, numbers);
    let activations: usize = Activations::of(config).all().map(bytes).iter().sum();
    let logits = machine.buffer_bytes(limits.logit_rows, config.vocab_size, Numbers::Wide);
    let stage = machine.stage_bytes(config.page_shape(), config.heads, limits);
    // Cosines and sines of both ropes.
    let ropes = 2 * 2 * size_of::<f32>() * limits.positions * config.head_dim / 2;
    activations + logits + stage + ropes
}

impl Config {
    /// What a page of its keys and values holds.
    pub fn page_shape(&self) -> PageShape {
        PageShape { layers: self.layer_count(), kv_heads: self.kv_heads, head_dim: self.head_dim }
    }
}

impl<B: Backend> Decoder<B> {
    /// How its numbers are kept.
    pub fn precision(&self) -> Precision {
        self.precision
    }

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
        ops.compute(rows, logit_rows, stage, |step| {
            let has_chosen = self.compute(ops, step, pages, activations);
            let Activations { residual, normed, .. } = activations;
            let epsilon = self.config.rms_norm_eps;
            if has_chosen {
                ops.rms_norm(residual, &self.final_norm, epsilon, normed);
            } else {
                ops.gather_norm(residual, step, &self.final_norm, epsilon, normed);
            }
            let head = self.head.as_ref().unwrap_or(&self.embedding);
            ops.matmul(normed, head, logits);
        });
    }

    /// Leaves the rows' hidden states, before the last norm, in the residual. Gives whether only those of the chosen rows are
    /// there.
    fn compute(
        &self,
        ops: &B,
        step: B::Step<'_>,
        pages: &mut B::Pages,
        activations: &mut Activations<B::Buffer>,
    ) -> bool {
        let epsilon = self.config.rms_norm_eps;
        ops.embed(&self.embedding, step, self.embedding_scale, &mut activations.residual);
        let mut has_chosen = false;
        let mut before: Option<&LayerWeights<B>> = None;
        for (index, layer) in self.layers.iter().enumerate() {
            self.project(ops, before, layer, activations);
            let pages = LayerPages { pages: &mut *pages, layer: index };
            self.attend(ops, layer, step, pages, activations);
            if index + 1 == self.layers.len() {
                let Activations { residual, attended, .. } = activations;
                has_chosen = ops.keep_logit_rows(step, [residual, attended]);
            }
            self.feed_forward(ops, layer, activations);
            before = Some(layer);
        }
        if let Some(last) = before {
            let Activations { residual, normed, branch, .. } = activations;
            let post = last.feed_forward_norm.as_ref();
            ops.add_norm(residual, branch, BranchNorms { post, next: None, epsilon }, normed);
        }
        has_chosen
    }

    /// From the residual, and the branch of the layer `before`, to `qkv`.
    fn project(
        &self,
        ops: &B,
        before: Option<&LayerWeights<B>>,
        layer: &LayerWeights<B>,
        activations: &mut Activations<B::Buffer>,
    ) {
        let Activations { residual, normed, branch, qkv, .. } = activations;
        let epsilon = self.config.rms_norm_eps;
        let Some(before) = before else {
            ops.rms_norm(residual, &layer.input_norm, epsilon, normed);
            return ops.matmul(normed, &layer.qkv, qkv);
        };
        let norms = BranchNorms {
            post: before.feed_forward_norm.as_ref(),
            next: Some(&layer.input_norm),
            epsilon,
        };
        ops.add_norm(residual, branch, norms, normed);
        ops.matmul(normed, &layer.qkv, qkv);
    }

    /// From `qkv` to `attended`.
    fn attend(
        &self,
        ops: &B,
        layer: &LayerWeights<B>,
        step: B::Step<'_>,
        pages: LayerPages<&mut B::Pages>,
        activations: &mut Activations<B::Buffer>,
    ) {
        let Activations { qkv, queries, attended, .. } = activations;
        let rope = match layer.window {
            Some(_) => &self.sliding_rope,
            None => &self.full_rope,
        };
        let shape = AttentionShape {
            heads: self.config.heads,
            scale: self.config.attention_scale,
            window: layer.window,
            both_ways: false,
        };
        let LayerPages { pages, layer: index } = pages;
        let written = LayerPages { pages: &mut *pages, layer: index };
        ops.rotate_and_store(qkv, queries, layer.head_norms.as_ref(), rope, step, written);
        ops.attention(queries, shape, step, LayerPages { pages: &*pages, layer: index }, attended);
    }

    /// From `attended` to the feed-forward layer's branch, which is yet to be added.
    fn feed_forward(
        &self,
        ops: &B,
        layer: &LayerWeights<B>,
        activations: &mut Activations<B::Buffer>,
    ) {
        let Activations { residual, normed, branch, attended, gate_up, gated, .. } = activations;
        ops.matmul(attended, &layer.output, branch);
        let norms = BranchNorms {
            post: layer.attention_norm.as_ref(),
            next: Some(&layer.feed_forward_input_norm),
            epsilon: self.config.rms_norm_eps,
        };
        ops.add_norm(residual, branch, norms, normed);
        ops.matmul_gated(normed, &layer.gate_up, self.config.activation, gate_up, gated);
        ops.matmul(gated, &layer.down, branch);
    }
}
