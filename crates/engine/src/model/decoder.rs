//! The forward pass: rows of tokens in, logits of chosen rows out.

use super::attention::Attention;
use super::cache::Cache;
use super::config::Config;
use super::delta_rule::DeltaRule;
use super::inputs::{Inputs, LayerInput};
use super::scratch::{Activations, Scratch};
use crate::ops::{Backend, BranchNorms, Precision, Rows};

/// A decoder's weights. `None` marks what a family does not have.
#[derive(Debug)]
pub struct Decoder<B: Backend> {
    pub config: Config,
    pub precision: Precision,
    /// `[vocabulary, hidden]`; also the head where that is tied.
    pub(super) embedding: B::Matrix,
    pub(super) embedding_scale: f32,
    pub(super) inputs: Option<Inputs<B>>,
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
    pub input_norm: B::Vector,
    pub mixer: Mixer<B>,
    /// `[hidden, heads · head_dim]`, or as many columns as a delta rule's values are.
    pub output: B::Matrix,
    pub attention_norm: Option<B::Vector>,
    pub feed_forward_input_norm: B::Vector,
    /// `[2 · intermediate, hidden]`.
    pub gate_up: B::Matrix,
    /// `[hidden, intermediate]`.
    pub down: B::Matrix,
    pub feed_forward_norm: Option<B::Vector>,
    pub input: Option<LayerInput<B>>,
    /// What the residual is multiplied by at the end.
    pub scale: f32,
}

/// What looks at other rows.
#[derive(Debug)]
pub(super) enum Mixer<B: Backend> {
    Attention(Attention<B>),
    DeltaRule(DeltaRule<B>),
}

impl<B: Backend> Decoder<B> {
    /// Runs `rows`, writes what later ones see of them to `cache`, and leaves the logits of `logit_rows` in
    /// `scratch`, `[logit_rows, vocabulary]`.
    pub fn forward(
        &self,
        ops: &B,
        rows: Rows<'_>,
        logit_rows: &[usize],
        cache: &mut Cache<B>,
        scratch: &mut Scratch<B>,
    ) {
        let Scratch { stage, activations, logits } = scratch;
        let epsilon = self.config.rms_norm_eps;
        ops.compute(rows, logit_rows, stage, |step| {
            let Activations { residual, normed, inputs, .. } = &mut *activations;
            ops.embed(&self.embedding, step, self.embedding_scale, residual);
            if let (Some(own), Some(buffers)) = (&self.inputs, &mut *inputs) {
                own.compute(ops, &self.config, step, (residual, normed), buffers);
            }
            if let Some(first) = self.layers.first() {
                ops.rms_norm(residual, &first.input_norm, epsilon, normed);
            }
            let (own, all) = (self.config.own_layers(), self.layers.len());
            for index in 0..own {
                self.layer(ops, index, step, cache, activations);
            }
            // From here on nothing is kept for later steps.
            if own < all {
                let Activations { residual, normed, inputs, .. } = &mut *activations;
                ops.keep_logit_rows(step, [residual, normed]);
                if let Some(inputs) = inputs {
                    ops.keep_logit_rows(step, [&mut inputs.all]);
                }
                ops.of_logit_rows(step, |step| {
                    (own..all).for_each(|index| self.layer(ops, index, step, cache, activations));
                });
            }
            let Activations { residual, normed, .. } = &mut *activations;
            ops.gather_norm(residual, step, &self.final_norm, epsilon, normed);
            let head = self.head.as_ref().unwrap_or(&self.embedding);
            ops.matmul(normed, head, logits);
            if let Some(cap) = self.config.logit_cap {
                ops.cap(logits, cap);
            }
        });
    }

    /// Attention and feed-forward layer, each added to the residual. What comes normed by this layer's input norm goes normed by that of
    /// the next.
    fn layer(
        &self,
        ops: &B,
        index: usize,
        step: B::Step<'_>,
        cache: &mut Cache<B>,
        activations: &mut Activations<B>,
    ) {
        let (layer, next) = (&self.layers[index], self.layers.get(index + 1));
        let Config { rms_norm_eps: epsilon, activation, .. } = self.config;
        if let Mixer::Attention(attention) = &layer.mixer {
            let rope = match (&self.still_rope, attention.shape.window) {
                (Some(still), _) if !attention.is_turned => still,
                (_, None) => &self.full_rope,
                (_, Some(_)) => &self.sliding_rope,
            };
            attention.compute(ops, rope, step, &mut cache.pages, activations);
        }
        let Activations {
            residual, normed, branch, attended, gate_up, gated, delta, inputs, ..
        } = activations;
        let mixed = match (&layer.mixer, delta, &mut cache.states) {
            (Mixer::DeltaRule(rule), Some(delta), Some(states)) => {
                rule.compute(ops, normed, step, states, delta)
            }
            _ => attended,
        };
        if next.is_none() {
            ops.keep_logit_rows(step, [residual, mixed]);
            if let Some(inputs) = inputs {
                ops.keep_logit_rows(step, [&mut inputs.all]);
            }
        }
        ops.matmul(mixed, &layer.output, branch);
        let (post, input_norm) = (&layer.attention_norm, &layer.feed_forward_input_norm);
        let post = post.as_ref();
        let norms = BranchNorms { post, scale: 1.0, next: Some(input_norm), epsilon };
        ops.add_norm(residual, branch, norms, normed);

        ops.matmul_gated(normed, &layer.gate_up, activation, gate_up, gated);
        ops.matmul(gated, &layer.down, branch);
        let (mut post, scale) = (layer.feed_forward_norm.as_ref(), layer.scale);
        if let (Some(input), Some(buffers)) = (&layer.input, inputs) {
            let norms = BranchNorms { post, scale: 1.0, next: None, epsilon };
            ops.add_norm(residual, branch, norms, normed);
            input.branch(ops, &self.config, index, (residual, normed), buffers, branch);
            post = Some(&input.norm);
        }
        let norms = BranchNorms { post, scale, next: next.map(|next| &next.input_norm), epsilon };
        ops.add_norm(residual, branch, norms, normed);
    }
}
