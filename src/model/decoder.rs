//! The forward pass: rows of tokens in, logits of chosen rows out.

use super::config::Config;
use crate::ops::{
    AttentionShape, Buffer, HeadNorms, KvPages, Matrix, Ops, Precision, Rope, Rows, Vector,
};

/// A decoder's weights. `None` marks what a family does not have.
#[derive(Debug)]
pub struct Decoder {
    pub config: Config,
    pub(super) precision: Precision,
    /// `[vocabulary, hidden]`; also the head where that is tied.
    pub(super) embedding: Matrix,
    pub(super) embedding_scale: f32,
    pub(super) layers: Vec<LayerWeights>,
    pub(super) final_norm: Vector,
    pub(super) head: Option<Matrix>,
    pub(super) full_rope: Rope,
    pub(super) sliding_rope: Rope,
}

#[derive(Debug)]
pub(super) struct LayerWeights {
    /// `None`: the layer sees every position before it.
    pub window: Option<usize>,
    pub input_norm: Vector,
    /// `[(heads + 2 · kv_heads) · head_dim, hidden]`.
    pub qkv: Matrix,
    pub head_norms: Option<HeadNorms>,
    /// `[hidden, heads · head_dim]`.
    pub output: Matrix,
    pub attention_norm: Option<Vector>,
    pub feed_forward_input_norm: Vector,
    /// `[2 · intermediate, hidden]`.
    pub gate_up: Matrix,
    /// `[hidden, intermediate]`.
    pub down: Matrix,
    pub feed_forward_norm: Option<Vector>,
}

/// Activations of one step, kept between steps so that none allocates.
#[derive(Debug, Default)]
pub struct Scratch {
    /// `[rows, hidden]`.
    residual: Buffer,
    normed: Buffer,
    branch: Buffer,
    /// `[rows, (heads + 2 · kv_heads) · head_dim]`.
    qkv: Buffer,
    /// `[rows, heads · head_dim]`.
    attended: Buffer,
    /// `[rows, 2 · intermediate]`, and `[rows, intermediate]`.
    gate_up: Buffer,
    gated: Buffer,
    /// `[logit rows, vocabulary]`.
    pub logits: Buffer,
}

impl Scratch {
    /// Bytes for `rows` rows of which `logit_rows` give logits.
    pub fn size_bytes(config: &Config, rows: usize, logit_rows: usize) -> usize {
        let qkv = (config.heads + 2 * config.kv_heads) * config.head_dim;
        let row = 3 * config.hidden_size
            + qkv
            + config.heads * config.head_dim
            + 3 * config.intermediate_size;
        size_of::<f32>() * (rows * row + logit_rows * config.vocab_size)
    }
}

impl Decoder {
    pub fn precision(&self) -> Precision {
        self.precision
    }

    /// Runs `rows`, writes their keys and values to `pages`, and leaves the logits of `logit_rows` in
    /// `scratch.logits`, `[logit_rows, vocabulary]`.
    pub fn forward(
        &self,
        ops: &Ops,
        rows: Rows<'_>,
        logit_rows: &[usize],
        pages: &mut KvPages,
        scratch: &mut Scratch,
    ) {
        ops.embed(
            &self.embedding,
            rows.tokens,
            self.embedding_scale,
            &mut scratch.residual,
        );
        for (index, layer) in self.layers.iter().enumerate() {
            self.attend(ops, layer, rows, (pages, index), scratch);
            self.feed_forward(ops, layer, scratch);
        }
        ops.gather(&scratch.residual, logit_rows, &mut scratch.branch);
        ops.rms_norm(
            &scratch.branch,
            &self.final_norm,
            self.config.rms_norm_eps,
            &mut scratch.normed,
        );
        ops.matmul(
            &scratch.normed,
            self.head.as_ref().unwrap_or(&self.embedding),
            &mut scratch.logits,
        );
    }

    fn attend(
        &self,
        ops: &Ops,
        layer: &LayerWeights,
        rows: Rows<'_>,
        (pages, index): (&mut KvPages, usize),
        scratch: &mut Scratch,
    ) {
        let Scratch {
            residual,
            normed,
            branch,
            qkv,
            attended,
            ..
        } = scratch;
        let epsilon = self.config.rms_norm_eps;
        let rope = if layer.window.is_some() {
            &self.sliding_rope
        } else {
            &self.full_rope
        };
        let shape = AttentionShape {
            heads: self.config.heads,
            scale: self.config.attention_scale,
            window: layer.window,
        };
        ops.rms_norm(residual, &layer.input_norm, epsilon, normed);
        ops.matmul(normed, &layer.qkv, qkv);
        ops.rotate_and_store(qkv, layer.head_norms.as_ref(), rope, rows, (pages, index));
        ops.attention(qkv, shape, rows, (pages, index), attended);
        ops.matmul(attended, &layer.output, branch);
        add_branch(
            ops,
            residual,
            branch,
            layer.attention_norm.as_ref(),
            epsilon,
            normed,
        );
    }

    fn feed_forward(&self, ops: &Ops, layer: &LayerWeights, scratch: &mut Scratch) {
        let Scratch {
            residual,
            normed,
            branch,
            gate_up,
            gated,
            ..
        } = scratch;
        let epsilon = self.config.rms_norm_eps;
        ops.rms_norm(residual, &layer.feed_forward_input_norm, epsilon, normed);
        ops.matmul(normed, &layer.gate_up, gate_up);
        ops.gate(gate_up, self.config.activation, gated);
        ops.matmul(gated, &layer.down, branch);
        add_branch(
            ops,
            residual,
            branch,
            layer.feed_forward_norm.as_ref(),
            epsilon,
            normed,
        );
    }
}

/// `residual += norm(branch)`, or `branch` itself where the family has no norm there.
fn add_branch(
    ops: &Ops,
    residual: &mut Buffer,
    branch: &Buffer,
    norm: Option<&Vector>,
    epsilon: f32,
    normed: &mut Buffer,
) {
    match norm {
        Some(norm) => {
            ops.rms_norm(branch, norm, epsilon, normed);
            ops.add(residual, normed);
        }
        None => ops.add(residual, branch),
    }
}
