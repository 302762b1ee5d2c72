//! candle as a backend: operations replace the tensors of the buffers that they write.

use candle_core::{DType, Error, Tensor};
use candle_nn::ops::{rms_norm, sigmoid};
use half::bf16;
use rayon::prelude::*;

use wardround_ops::checkpoint::RawTensor;
use wardround_ops::sampler::draw_rows;
use wardround_ops::sampling::{Drawn, SamplingRequest};
use wardround_ops::{
    Activation, AttentionShape, Backend, BranchNorms, DeltaShape, DeltaWeights, HeadNorms,
    HostStep, LayerPages, LayerStates, Machine, Numbers, OpsError, PAGE, PageShape, Precision,
    Quantisation, Rotation, Rows, StateShape, StepLimits, StoredType, cpu::States,
};

use super::attention::attend_all;
use super::functions::{capped, gated, gated_by, grown, headed, turned};
use super::{Buffer, Candle, Matrix, Pages, Rope, Vector};

impl Candle {
    fn fail(&self, reason: impl ToString) -> OpsError {
        OpsError::Device { device: self.kind(), reason: reason.to_string() }
    }

    fn stacked<T: candle_core::WithDType>(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        number: impl Fn(f32) -> T,
    ) -> Result<Tensor, Error> {
        let outputs: usize = parts.iter().map(|part| part.rows(inputs)).sum();
        let mut numbers = Vec::with_capacity(outputs * inputs);
        let mut wide = vec![0.0; inputs];
        for part in parts {
            for row in 0..part.rows(inputs) {
                part.read_row(row, &mut wide);
                numbers.extend(wide.iter().map(|value| number(*value)));
            }
        }
        Tensor::from_vec(numbers, (outputs, inputs), &self.device)
    }

    fn embedded(&self, table: &Matrix, tokens: &[u32], scale: f32) -> Result<Tensor, Error> {
        let rows = table.0.index_select(&self.ids(tokens)?, 0)?;
        rows.to_dtype(DType::F32)? * f64::from(scale)
    }

    fn product(&self, x: &Buffer, weights: &Matrix) -> Result<Tensor, Error> {
        let (x, weights) = (x.tensor()?, &weights.0);
        if x.dim(0)? == 0 {
            return Tensor::zeros((0, weights.dim(0)?), DType::F32, &self.device);
        }
        let x = x.to_dtype(weights.dtype())?;
        x.matmul(&weights.t()?)?.to_dtype(DType::F32)
    }

    fn gathered(&self, x: &Buffer, rows: &[usize]) -> Result<Tensor, Error> {
        let x = x.tensor()?;
        if rows.is_empty() {
            return Tensor::zeros((0, x.dim(1)?), DType::F32, &self.device);
        }
        let rows: Vec<u32> = rows.iter().map(|row| *row as u32).collect();
        x.index_select(&self.ids(&rows)?, 0)
    }

    /// Stores keys and values; gives the queries.
    fn rotated(
        &self,
        qkv: &Buffer,
        norms: Option<&HeadNorms<Vector>>,
        rope: &Rope,
        rows: Rows<'_>,
        LayerPages { pages, layer }: LayerPages<&mut Pages>,
    ) -> Result<Tensor, Error> {
        let qkv = qkv.tensor()?;
        let (head_dim, key_width) = (pages.head_dim, pages.width());
        let query_width = qkv.dim(1)? - 2 * key_width;
        let positions = self.ids(rows.positions)?;
        let part = |start, width, norm: Option<&Vector>| {
            let norm = norm.zip(norms.map(|norms| norms.epsilon));
            headed(&qkv.narrow(1, start, width)?, norm, head_dim)
        };
        let queries = part(0, query_width, norms.map(|norms| &norms.query))?;
        let queries = grown(turned(&queries, rope, &positions)?, rope, &positions)?;
        let keys = part(query_width, key_width, norms.map(|norms| &norms.key))?;
        let keys = turned(&keys, rope, &positions)?;
        let weight = norms.and_then(|norms| norms.value.as_ref());
        let values = part(query_width + key_width, key_width, weight)?;
        let slots = self.ids(&slots(rows))?;
        pages.store(layer, &slots, [&keys, &values.reshape((rows.len(), key_width))?])?;
        Ok(queries)
    }

    /// Queries alone.
    fn turned(
        &self,
        queries: &Buffer,
        norm: Option<(&Vector, f32)>,
        rope: &Rope,
        positions: &[u32],
        head_dim: usize,
    ) -> Result<Tensor, Error> {
        let positions = self.ids(positions)?;
        let queries = headed(queries.tensor()?, norm, head_dim)?;
        grown(turned(&queries, rope, &positions)?, rope, &positions)
    }
}

fn normed(x: &Buffer, weight: &Vector, epsilon: f32) -> Result<Tensor, Error> {
    rms_norm(x.tensor()?, &weight.0, epsilon)
}

fn sum(x: &Buffer, y: Result<Tensor, Error>) -> Result<Tensor, Error> {
    x.tensor()? + y?
}

/// Where in the pool each row's key and value lie, in positions.
fn slots(rows: Rows<'_>) -> Vec<u32> {
    let slot = |(&position, &sequence): (&u32, &u32)| {
        let page = rows.tables[sequence as usize][position as usize / PAGE];
        page * PAGE as u32 + position % PAGE as u32
    };
    let rows = rows.positions.iter().zip(rows.sequences);
    rows.map(slot).collect()
}

impl Backend for Candle {
    type Buffer = Buffer;
    type Matrix = Matrix;
    type Vector = Vector;
    type Rope = Rope;
    type Pages = Pages;
    type States = States;
    type Stage = ();
    type Step<'a> = HostStep<'a>;

    const MACHINE: Machine = Machine::Candle;

    /// Engines on the device wait for one another.
    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.host.take_turn(step)
    }

    fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        (0..count).into_par_iter().with_max_len(1).for_each(body);
    }

    fn pack(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        if precision.quantisation != Quantisation::None {
            return Err(OpsError::quantisation("candle", precision.quantisation));
        }
        let matrix = match precision.stored {
            StoredType::F32 => self.stacked(parts, inputs, |value| value),
            StoredType::Bf16 => self.stacked(parts, inputs, bf16::from_f32),
        };
        let matrix = matrix.map_err(|error| OpsError::memory("weights", error))?;
        Ok(Matrix(matrix))
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vector, OpsError> {
        let vector = Tensor::new(values, &self.device);
        Ok(Vector(vector.map_err(|error| OpsError::memory("norms", error))?))
    }

    fn rope(&self, rotation: &Rotation, positions: usize) -> Result<Rope, OpsError> {
        let angles = rotation.angles(positions);
        let table = |numbers: Vec<f32>, width| {
            Tensor::from_vec(numbers, (positions, width), &self.device)
                .map_err(|error| OpsError::memory("rotary tables", error))
        };
        let half = rotation.inverse_frequencies.len();
        Ok(Rope {
            cosines: table(angles.cosines, half)?,
            sines: table(angles.sines, half)?,
            growth: rotation.growth.map(|_| table(angles.growth, 1)).transpose()?,
        })
    }

    fn pages(&self, shape: PageShape, _kept: StoredType, pages: usize) -> Result<Pages, OpsError> {
        Pages::new(shape, pages, &self.device)
            .map_err(|error| OpsError::memory("keys and values", error))
    }

    fn states(&self, shape: StateShape, slots: usize) -> Result<States, OpsError> {
        self.host.states(shape, slots)
    }

    fn copy_state(&self, states: &mut States, from: u32, to: u32) {
        states.copy(from, to);
    }

    /// Buffers grow with the steps.
    fn buffer(&self, _rows: usize, _width: usize, _numbers: Numbers) -> Result<Buffer, OpsError> {
        Ok(Buffer(Err("nothing was computed yet".to_owned())))
    }

    fn stage(&self, _shape: PageShape, _heads: usize, _limits: StepLimits) -> Result<(), OpsError> {
        Ok(())
    }

    fn compute<'a>(
        &self,
        rows: Rows<'a>,
        logit_rows: &'a [usize],
        _stage: &'a mut (),
        mut body: impl FnMut(HostStep<'a>),
    ) {
        body(HostStep { rows, logit_rows });
    }

    fn embed(&self, table: &Matrix, step: HostStep<'_>, scale: f32, out: &mut Buffer) {
        out.set(self.embedded(table, step.rows.tokens, scale));
    }

    fn rms_norm(&self, x: &Buffer, weight: &Vector, epsilon: f32, out: &mut Buffer) {
        out.set(normed(x, weight, epsilon));
    }

    fn add_norm(
        &self,
        residual: &mut Buffer,
        branch: &Buffer,
        norms: BranchNorms<'_, Vector>,
        out: &mut Buffer,
    ) {
        let BranchNorms { post, scale, next, epsilon } = norms;
        let branch = match post {
            Some(post) => normed(branch, post, epsilon),
            None => branch.tensor().cloned(),
        };
        residual.set(sum(residual, branch));
        if scale != 1.0 {
            residual.set(residual.tensor().and_then(|sum| sum * f64::from(scale)));
        }
        if let Some(next) = next {
            out.set(normed(residual, next, epsilon));
        }
    }

    fn gather_norm(
        &self,
        x: &Buffer,
        step: HostStep<'_>,
        weight: &Vector,
        epsilon: f32,
        out: &mut Buffer,
    ) {
        out.set(self.gathered(x, step.logit_rows));
        if !step.logit_rows.is_empty() {
            out.set(normed(out, weight, epsilon));
        }
    }

    fn matmul(&self, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        out.set(self.product(x, weights));
    }

    fn matmul_gated(
        &self,
        x: &Buffer,
        weights: &Matrix,
        activation: Activation,
        products: &mut Buffer,
        out: &mut Buffer,
    ) {
        products.set(self.product(x, weights));
        out.set(gated(products, activation));
    }

    fn rotate_and_store(
        &self,
        qkv: &mut Buffer,
        queries: &mut Buffer,
        norms: Option<&HeadNorms<Vector>>,
        rope: &Rope,
        step: HostStep<'_>,
        pages: LayerPages<&mut Pages>,
    ) {
        queries.set(self.rotated(qkv, norms, rope, step.rows, pages));
    }

    fn rotate(
        &self,
        qkv: &mut Buffer,
        queries: &mut Buffer,
        norm: Option<(&Vector, f32)>,
        rope: &Rope,
        step: HostStep<'_>,
        head_dim: usize,
    ) {
        queries.set(self.turned(qkv, norm, rope, step.rows.positions, head_dim));
    }

    fn regroup(&self, buffer: &mut Buffer, width: usize) {
        buffer.set(buffer.tensor().and_then(|numbers| numbers.reshape(((), width))));
    }

    fn gate_by(
        &self,
        gate: &Buffer,
        activation: Activation,
        (by, first): (&Buffer, usize),
        out: &mut Buffer,
    ) {
        let gate = gate.tensor();
        out.set(gate.and_then(|gate| gated_by(gate, activation, by.tensor()?, first)));
    }

    fn cap(&self, x: &mut Buffer, cap: f32) {
        x.set(capped(x, cap));
    }

    fn attention(
        &self,
        queries: &Buffer,
        shape: AttentionShape,
        step: HostStep<'_>,
        pages: LayerPages<&Pages>,
        out: &mut Buffer,
    ) {
        let queries = queries.tensor();
        out.set(queries.and_then(|queries| attend_all(queries, shape, step.rows, pages)));
    }

    fn gate_heads(&self, x: &mut Buffer, gates: &Buffer) {
        let gated = |x: &Tensor| x * sigmoid(gates.tensor()?)?;
        x.set(x.tensor().and_then(gated));
    }

    fn delta_rule(
        &self,
        projected: &mut Buffer,
        weights: &DeltaWeights<Vector>,
        shape: DeltaShape,
        step: HostStep<'_>,
        states: LayerStates<&mut States>,
        out: &mut Buffer,
    ) {
        out.set(self.recurred(projected, weights, shape, step, states));
    }

    /// Rows are drawn from on the host.
    fn draw(
        &self,
        logits: &mut Buffer,
        requests: &[Option<SamplingRequest>],
        _stage: &mut (),
    ) -> Result<Vec<Drawn>, OpsError> {
        let numbers = self.read(logits, requests.len())?;
        let width = numbers.len().checked_div(requests.len()).unwrap_or(0);
        let rows = numbers.chunks_exact(width.max(1)).collect();
        Ok(draw_rows(self, rows, requests))
    }

    fn read(&self, buffer: &Buffer, rows: usize) -> Result<Vec<f32>, OpsError> {
        let numbers = buffer.tensor().and_then(|tensor| match rows {
            0 => self.device.synchronize().map(|()| Vec::new()),
            _ => tensor.narrow(0, 0, rows)?.flatten_all()?.to_vec1(),
        });
        numbers.map_err(|error| self.fail(error))
    }
}
