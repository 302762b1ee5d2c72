//! The gated delta rule on the host: thousands of small products in a row, each of which candle would launch by itself.

use candle_core::{Result, Tensor};
use wardround_ops::cpu::{self, States};
use wardround_ops::{Backend, DeltaShape, DeltaWeights, HostStep, LayerStates};

use super::{Buffer, Candle, Vector};

impl Candle {
    pub(super) fn recurred(
        &self,
        projected: &Buffer,
        weights: &DeltaWeights<Vector>,
        shape: DeltaShape,
        step: HostStep<'_>,
        states: LayerStates<&mut States>,
    ) -> Result<Tensor> {
        let (mut on_host, mut out) = (cpu::Buffer::default(), cpu::Buffer::default());
        on_host.reshape(step.rows.len(), shape.projected());
        let numbers: Vec<f32> = projected.tensor()?.flatten_all()?.to_vec1()?;
        let rows = on_host.rows_mut().zip(numbers.chunks_exact(shape.projected()));
        rows.for_each(|(to, from)| to.copy_from_slice(from));
        let vector = |vector: &Vector| vector.0.to_vec1().map(cpu::Vector);
        let weights = DeltaWeights {
            convolution: vector(&weights.convolution)?,
            rates: vector(&weights.rates)?,
            step_biases: vector(&weights.step_biases)?,
            norm: vector(&weights.norm)?,
            epsilon: weights.epsilon,
        };
        self.host.delta_rule(&mut on_host, &weights, shape, step, states, &mut out);
        let numbers = out.rows_mut().flat_map(|row| row.to_vec()).collect::<Vec<f32>>();
        Tensor::from_vec(numbers, (step.rows.len(), shape.values()), projected.tensor()?.device())
    }
}
