//! What a step is computed in: its activations, its logits, and the machine's own stage.

use super::config::Config;
use super::delta_rule::DeltaActivations;
use super::inputs::InputBuffers;
use crate::ops::{Backend, Numbers, OpsError, StepLimits};

/// What a step is computed in, kept between steps so that none allocates.
#[derive(Debug)]
pub struct Scratch<B: Backend> {
    pub(super) stage: B::Stage,
    pub(super) activations: Activations<B>,
    /// `[logit rows, vocabulary]`.
    pub(super) logits: B::Buffer,
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
        (2 * inner, Numbers::Passing),
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
