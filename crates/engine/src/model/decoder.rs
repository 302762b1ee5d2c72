//! The forward pass: rows of tokens in, logits of chosen rows out.

use super::attention::Attention;
use super::cache::Cache;
use super::config::Config;
use super::delta_rule::{DeltaActivations, DeltaRule};
use super::inputs::{InputBuffers, Inputs, LayerInput};
use crate::ops::{Backend, BranchNorms, Numbers, OpsError, Precision, Rows, StepLimits};

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
pub(super) struct Activations<B: Backend> {
    /// `[rows, hidden]`.
    pub residual: B::Buffer,
    pub normed: B::Buffer,
    pub branch: B::Buffer,
    /// `[rows, (heads + 2 · kv_heads) · head_dim]`.
    pub qkv: B::Buffer,
    /// `[rows, heads · head_dim]`.
    pub queries: B::Buffer,
    pub attended: B::Buffer,
    /// `[rows, 2 · intermediate]`, and `[rows, intermediate]`.
    pub gate_up: B::Buffer,
    pub gated: B::Buffer,
    /// `[rows, heads · head_dim]`, where heads are gated.
    pub gates: Option<B::Buffer>,
    pub delta: Option<DeltaActivations<B>>,
    pub inputs: Option<InputBuffers<B>>,
}

/// Of each activation but the last two, in that order, the numbers a row and how they are kept.
pub(super) fn widths(config: &Config) -> [(usize, Numbers); 8] {
    let Config { hidden_size: hidden, heads, .. } = *config;
    let head_dim = config.widest_page_shape().head_dim;
    let inner = config.intermediate_size * config.sharing_width;
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
        let stage = ops.stage(config.widest_page_shape(), config.heads, limits)?;
        let [residual, normed, branch, qkv, queries, attended, gate_up, gated] =
            widths(config).map(|(width, numbers)| ops.buffer(limits.rows, width, numbers));
        let gates = config
            .family
            .traits()
            .gates_heads
            .then(|| ops.buffer(limits.rows, config.heads * config.head_dim, Numbers::Wide));
        let delta =
            config.delta.as_ref().map(|delta| DeltaActivations::new(ops, delta.shape, limits.rows));
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
                gates: gates.transpose()?,
                delta: delta.transpose()?,
                inputs: InputBuffers::new(ops, config, limits.rows)?,
            },
            logits: ops.buffer(limits.logit_rows, config.vocab_size, Numbers::Wide)?,
        })
    }

    /// The logits of the first `rows` rows that gave some, and what a draw from them passes through.
    pub fn logits(&mut self) -> (&mut B::Buffer, &mut B::Stage) {
        (&mut self.logits, &mut self.stage)
    }
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
                own.compute(ops, &self.config, step, residual, buffers);
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
            input.branch(ops, &self.config, index, residual, buffers, branch);
            post = Some(&input.norm);
        }
        let norms = BranchNorms { post, scale, next: next.map(|next| &next.input_norm), epsilon };
        ops.add_norm(residual, branch, norms, normed);
    }
}
