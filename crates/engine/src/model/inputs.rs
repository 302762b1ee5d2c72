//! What a token gives each layer beside the residual: an embedding of its own and a projection of the common one, added; and what a layer
//! makes of it.

use super::ModelError;
use super::config::{Config, LAYER_NORM, LAYER_PROJECTION, LAYER_TABLE};
use super::weights::Loader;
use crate::ops::{Backend, BranchNorms, Numbers, OpsError};

/// Of all layers together.
#[derive(Debug)]
pub(super) struct Inputs<B: Backend> {
    /// `[vocabulary, layers · layer_input]`.
    pub table: B::Matrix,
    pub table_scale: f32,
    /// `[layers · layer_input, hidden]`.
    pub projection: B::Matrix,
    /// Of each layer's part of the projection, `[layer_input]`; what the sum is multiplied by is in it, and in `table_scale`.
    pub norm: B::Vector,
    pub epsilon: f32,
}

/// Of one layer.
#[derive(Debug)]
pub(super) struct LayerInput<B: Backend> {
    /// `[layer_input, hidden]`.
    pub gate: B::Matrix,
    /// `[hidden, layer_input]`.
    pub projection: B::Matrix,
    pub norm: B::Vector,
}

/// What they are computed in.
#[derive(Debug)]
pub(super) struct InputBuffers<B: Backend> {
    /// `[rows, layers · layer_input]`.
    pub all: B::Buffer,
    projected: B::Buffer,
    normed: B::Buffer,
    /// `[rows, layer_input]`.
    gate: B::Buffer,
    gated: B::Buffer,
}

/// Of each buffer, in that order, the numbers a row and how they are kept; nothing where there are none.
pub(super) fn input_widths(config: &Config) -> [(usize, Numbers); 5] {
    let (own, all) = (config.layer_input, config.layer_input * config.layer_count());
    [
        (all, Numbers::Wide),
        (all, Numbers::Wide),
        (all, Numbers::Passing),
        (own, Numbers::Wide),
        (own, Numbers::Narrow),
    ]
}

impl<B: Backend> InputBuffers<B> {
    pub fn new(ops: &B, config: &Config, rows: usize) -> Result<Option<Self>, OpsError> {
        if config.layer_input == 0 {
            return Ok(None);
        }
        let buffers = input_widths(config).map(|(width, numbers)| ops.buffer(rows, width, numbers));
        let [all, projected, normed, gate, gated] = buffers;
        Ok(Some(InputBuffers {
            all: all?,
            projected: projected?,
            normed: normed?,
            gate: gate?,
            gated: gated?,
        }))
    }
}

impl<B: Backend> Inputs<B> {
    /// Leaves all layers' inputs in `buffers`; `embedded` are the step's tokens, as the first layer takes them, beside room for them.
    pub fn compute(
        &self,
        ops: &B,
        config: &Config,
        step: B::Step<'_>,
        (embedded, room): (&B::Buffer, &mut B::Buffer),
        buffers: &mut InputBuffers<B>,
    ) {
        let InputBuffers { all, projected, normed, .. } = buffers;
        let (own, layers) = (config.layer_input, config.layer_count());
        ops.embed(&self.table, step, self.table_scale, all);
        ops.matmul(ops.narrow(embedded, room), &self.projection, projected);
        // Each layer's part is normed by itself.
        ops.regroup(all, own);
        ops.regroup(projected, own);
        let post = Some(&self.norm);
        let norms = BranchNorms { post, scale: 1.0, next: None, epsilon: self.epsilon };
        ops.add_norm(all, projected, norms, normed);
        ops.regroup(all, own * layers);
    }
}

impl<B: Backend> LayerInput<B> {
    /// What the layer of this number makes of its input, to be normed and added to the residual.
    pub fn branch(
        &self,
        ops: &B,
        config: &Config,
        layer: usize,
        (residual, room): (&B::Buffer, &mut B::Buffer),
        buffers: &mut InputBuffers<B>,
        branch: &mut B::Buffer,
    ) {
        let InputBuffers { all, gate, gated, .. } = buffers;
        ops.matmul(ops.narrow(residual, room), &self.gate, gate);
        ops.gate_by(gate, config.activation, (all, layer * config.layer_input), gated);
        ops.matmul(gated, &self.projection, branch);
    }
}

impl<B: Backend> Loader<'_, B> {
    pub fn layer_input(&self, index: usize) -> Result<LayerInput<B>, ModelError> {
        let Config { hidden_size: hidden, layer_input: own, .. } = *self.config;
        let name = |part: &str| format!("layers.{index}.{part}");
        let matrix = |part: &str, outputs, inputs| {
            self.matrix(&[&name(part)], &[outputs], inputs, self.precision.of_layer(inputs))
        };
        Ok(LayerInput {
            gate: matrix("per_layer_input_gate", own, hidden)?,
            projection: matrix("per_layer_projection", hidden, own)?,
            norm: self.norm(&name("post_per_layer_input_norm"), hidden)?,
        })
    }

    /// The projection's factor, the root of hidden_size inverted, is in the norm's epsilon; half a sum's root in both parts of it.
    pub fn inputs(&self) -> Result<Inputs<B>, ModelError> {
        let Config { vocab_size, hidden_size: hidden, layer_input: own, .. } = *self.config;
        let all = own * self.config.layer_count();
        let half = std::f32::consts::FRAC_1_SQRT_2;
        let table = self.tensor(LAYER_TABLE, &[vocab_size, all])?;
        let mut norm = self.numbers(LAYER_NORM, &[own])?;
        norm.iter_mut().for_each(|weight| *weight *= half);
        let precision = self.precision.of_layer(hidden);
        Ok(Inputs {
            table: self.ops.pack(&[table], all, self.precision.of_tables())?,
            table_scale: self.precision.stored.round((own as f32).sqrt()) * half,
            projection: self.matrix(&[LAYER_PROJECTION], &[all], hidden, precision)?,
            norm: self.ops.vector(norm)?,
            epsilon: self.config.rms_norm_eps * hidden as f32,
        })
    }
}
