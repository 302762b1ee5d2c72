//! The gated delta rule on the GPU, and the states of sequences, as on the CPU (`crates/ops/src/cpu/delta_rule.rs`).

use super::arguments::Arguments;
use super::launch::Launch;
use super::region::Region;
use super::stage::Step;
use super::{Buffer, Cuda, Vector};
use crate::{DeltaShape, DeltaWeights, LayerStates, OpsError, StateShape};

/// What kernels/delta_rule.cu takes: rows that a convolution sees, numbers of a head's keys, columns of its matrix in a CTA of the rule.
const MOST_TAPS: usize = 4;
const MOST_KEYS: usize = 128;
const COLUMNS: usize = 32;
const THREADS: usize = 256;
const RULE_THREADS: usize = 128;
/// CTAs that copy a layer's part of a state.
const COPIERS: usize = 64;

/// States of sequences: of each layer and slot f32 as the CPU has them.
#[derive(Debug)]
pub struct States {
    region: Region,
    shape: StateShape,
    slots: usize,
}

fn shaped(arguments: Arguments, shape: DeltaShape) -> Arguments {
    let DeltaShape { key_heads, value_heads, key_dim, value_dim, taps } = shape;
    arguments.int(key_heads).int(value_heads).int(key_dim).int(value_dim).int(taps)
}

impl Cuda {
    pub(super) fn new_states(&self, shape: StateShape, slots: usize) -> Result<States, OpsError> {
        let DeltaShape { key_dim, taps, .. } = shape.of_layer;
        if key_dim > MOST_KEYS || taps > MOST_TAPS {
            let problem = format!(
                "no kernel computes the delta rule with keys of {key_dim} numbers and {taps} taps"
            );
            return Err(OpsError::refused(problem, "take --device cpu"));
        }
        let region = self.stream.allocate(shape.bytes() * slots, "states")?;
        Ok(States { region, shape, slots })
    }

    pub(super) fn copy_slot(&self, states: &States, [from, to]: [u32; 2]) {
        let arguments = Arguments::default()
            .region(&states.region)
            .int(from as usize)
            .int(to as usize)
            .int(states.slots)
            .int(states.shape.of_layer.state());
        let grid = [states.shape.layers, COPIERS, 1];
        self.stream.launch(Launch::new(self.kernels.copy_states, grid, THREADS), arguments);
    }

    pub(super) fn recur(
        &self,
        projected: &Buffer,
        weights: &DeltaWeights<Vector>,
        shape: DeltaShape,
        step: Step,
        LayerStates { states, layer }: LayerStates<&mut States>,
        out: &mut Buffer,
    ) {
        out.set_rows(step.rows);
        let DeltaShape { value_heads, value_dim, .. } = shape;
        let place = 4 * layer * states.slots * shape.state();
        let shaped = |arguments| shaped(arguments, shape);
        let of_runs = |arguments: Arguments| {
            let rows = arguments.address(step.at.runs).address(step.at.positions);
            shaped(rows.address(states.region.address() + place as u64))
        };
        let read = || Arguments::default().region(&projected.region);
        let kernels = &self.kernels;
        self.activate(projected, &weights.rates, &weights.step_biases, shape);
        let grid = [step.runs, shape.channels().div_ceil(THREADS), 1];
        let convolved = of_runs(read().region(&weights.convolution.0));
        self.stream.launch(Launch::new(kernels.delta_convolve, grid, THREADS), convolved);
        let grid = [step.runs, value_heads, value_dim.div_ceil(COLUMNS)];
        self.stream.launch(Launch::new(kernels.delta_rule, grid, RULE_THREADS), of_runs(read()));
        let normed = read().region(&weights.norm.0).float(weights.epsilon);
        let normed = shaped(normed.rows(out));
        self.stream.launch(Launch::by_row(kernels.delta_norm.to(out), step.rows), normed);
    }

    /// Makes of strengths and steps what they do.
    pub(super) fn activate(
        &self,
        projected: &Buffer,
        rates: &Vector,
        biases: &Vector,
        shape: DeltaShape,
    ) {
        let arguments = Arguments::default().region(&projected.region);
        let arguments = shaped(arguments.region(&rates.0).region(&biases.0), shape);
        self.stream.launch(Launch::by_row(self.kernels.delta_activate, projected.rows), arguments);
    }

    pub(super) fn gate(&self, x: &Buffer, gates: &Buffer) {
        let arguments = Arguments::default().rows(x).region(&gates.region).int(gates.width);
        self.stream.launch(Launch::by_row(self.kernels.gate_heads.to(x), x.rows), arguments);
    }
}
