//! A layer of the gated delta rule (Yang, Kautz and Hatamizadeh, arXiv:2412.06464), as Qwen 3.5 has it.

use super::ModelError;
use super::weights::Loader;
use crate::ops::{Backend, DeltaShape, DeltaWeights, LayerStates, Numbers, OpsError};

#[derive(Debug)]
pub(super) struct DeltaRule<B: Backend> {
    shape: DeltaShape,
    /// Where its states lie in a slot.
    place: usize,
    /// `[shape.projected(), hidden]`.
    projection: B::Matrix,
    weights: DeltaWeights<B::Vector>,
}

/// What it computes in.
#[derive(Debug)]
pub(super) struct DeltaActivations<B: Backend> {
    /// `[rows, shape.projected()]`.
    projected: B::Buffer,
    /// `[rows, shape.values()]`.
    mixed: B::Buffer,
}

/// Of each of both, the numbers a row and how they are kept.
pub(super) fn widths(shape: DeltaShape) -> [(usize, Numbers); 2] {
    [(shape.projected(), Numbers::Wide), (shape.values(), Numbers::Narrow)]
}

impl<B: Backend> DeltaActivations<B> {
    pub fn new(ops: &B, shape: DeltaShape, rows: usize) -> Result<Self, OpsError> {
        let [projected, mixed] =
            widths(shape).map(|(width, numbers)| ops.buffer(rows, width, numbers));
        Ok(DeltaActivations { projected: projected?, mixed: mixed? })
    }
}

impl<B: Backend> DeltaRule<B> {
    /// Of layer `index`, which is one.
    pub fn load(
        loader: &Loader<'_, B>,
        index: usize,
        shape: DeltaShape,
    ) -> Result<DeltaRule<B>, ModelError> {
        let name = |part: &str| format!("layers.{index}.linear_attn.{part}");
        let names = ["in_proj_qkv", "in_proj_z", "in_proj_b", "in_proj_a"].map(name);
        let DeltaShape { value_heads: heads, value_dim, taps, .. } = shape;
        let outputs = [shape.channels(), shape.values(), heads, heads];
        let rates = loader.numbers(&name("A_log"), &[heads])?;
        let by_channel = loader.numbers(&name("conv1d"), &[shape.channels(), 1, taps])?;
        let tap = |tap: usize| by_channel.iter().skip(tap).step_by(taps);
        let convolution = (0..taps).flat_map(tap).copied().collect();
        let weights = DeltaWeights {
            convolution: loader.ops.vector(convolution)?,
            rates: loader.ops.vector(rates.into_iter().map(libm::expf).collect())?,
            step_biases: loader.ops.vector(loader.numbers(&name("dt_bias"), &[heads])?)?,
            // Stored as it is, unlike the family's other norms.
            norm: loader.ops.vector(loader.numbers(&name("norm"), &[value_dim])?)?,
            epsilon: loader.config.rms_norm_eps,
        };
        let hidden = loader.config.hidden_size;
        let names = names.each_ref().map(String::as_str);
        let precision = loader.precision.of_layer(hidden);
        let projection = loader.matrix(&names, &outputs, hidden, precision)?;
        Ok(DeltaRule { shape, place: loader.config.place(index), projection, weights })
    }

    /// What it makes of rows that are normed, `[rows, shape.values()]`.
    pub fn compute<'a>(
        &self,
        ops: &B,
        normed: &B::Buffer,
        step: B::Step<'_>,
        states: &mut B::States,
        activations: &'a mut DeltaActivations<B>,
    ) -> &'a mut B::Buffer {
        let DeltaActivations { projected, mixed } = activations;
        ops.matmul(normed, &self.projection, projected);
        let states = LayerStates { states, layer: self.place };
        ops.delta_rule(projected, &self.weights, self.shape, step, states, mixed);
        mixed
    }
}
