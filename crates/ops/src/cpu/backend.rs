//! The CPU as a backend: every operation is done when its call returns.

use super::activation::cap_row;
use super::matrix::Tiles;
use super::norm::normalise;
use super::pages::of_either;
use super::{Buffer, Cpu, Disjoint, KvPages, Matrix, Rope, States, Vector};
use crate::checkpoint::RawTensor;
use crate::sampler::draw_rows;
use crate::sampling::{Drawn, SamplingRequest};
use crate::{
    Activation, AttentionShape, Backend, BranchNorms, DeltaShape, DeltaWeights, HeadNorms,
    HostStep, LayerPages, LayerStates, Machine, Numbers, OpsError, PageShape, Precision, Rotation,
    Rows, StateShape, StepLimits, StoredType,
};

impl Backend for Cpu {
    type Buffer = Buffer;
    type Matrix = Matrix;
    type Vector = Vector;
    type Rope = Rope;
    type Pages = KvPages;
    type States = States;
    type Stage = ();
    type Step<'a> = HostStep<'a>;

    const MACHINE: Machine = Machine::Cpu;

    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        Cpu::run(self, step)
    }

    fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync)) {
        if count < 2 || self.threads() < 2 {
            (0..count).for_each(body);
        } else {
            self.team.split(count, count, &|range| range.for_each(body));
        }
    }

    fn pack(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        Matrix::pack(parts, inputs, precision).map_err(|error| OpsError::memory("weights", error))
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vector, OpsError> {
        Ok(Vector(values))
    }

    fn rope(&self, rotation: &Rotation, positions: usize) -> Result<Rope, OpsError> {
        Ok(Rope::new(rotation, positions))
    }

    fn pages(&self, shape: PageShape, kept: StoredType, pages: usize) -> Result<KvPages, OpsError> {
        KvPages::new(shape, kept, pages)
            .map_err(|error| OpsError::memory("the pages of keys and values", error))
    }

    fn touch(&self, pages: &mut KvPages) {
        pages.touch();
    }

    fn states(&self, shape: StateShape, slots: usize) -> Result<States, OpsError> {
        States::new(shape, slots).map_err(|error| OpsError::memory("states", error))
    }

    fn copy_state(&self, states: &mut States, from: u32, to: u32) {
        states.copy(from, to);
    }

    /// Buffers grow with the steps.
    fn buffer(&self, _rows: usize, _width: usize, _numbers: Numbers) -> Result<Buffer, OpsError> {
        Ok(Buffer::default())
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
        out.reshape(step.rows.len(), table.inputs);
        // Weights are taken out of their tiles one by one.
        self.each_row(out, 16 * step.rows.len() * table.inputs, |row, out| {
            let token = step.rows.tokens[row] as usize;
            for (k, value) in out.iter_mut().enumerate() {
                *value = scale * table.weight(token, k);
            }
        });
    }

    fn rms_norm(&self, x: &Buffer, weight: &Vector, epsilon: f32, out: &mut Buffer) {
        out.reshape(x.rows(), x.width);
        self.each_row(out, 4 * x.data.len(), |row, out| {
            normalise(self.isa, x.row(row), &weight.0, epsilon, out);
        });
    }

    fn add_norm(
        &self,
        residual: &mut Buffer,
        branch: &Buffer,
        norms: BranchNorms<'_, Vector>,
        normed: &mut Buffer,
    ) {
        let BranchNorms { post, scale, next, epsilon } = norms;
        normed.reshape(residual.rows(), residual.width);
        let work = 8 * residual.data.len();
        let to = Disjoint::new(&mut normed.data);
        self.each_row(residual, work, |row, residual| {
            // SAFETY: each row is written by one thread alone.
            let normed = unsafe { to.slice(row * residual.len(), residual.len()) };
            match post {
                Some(post) => {
                    normalise(self.isa, branch.row(row), &post.0, epsilon, normed);
                    add_row(residual, normed);
                }
                None => add_row(residual, branch.row(row)),
            }
            if scale != 1.0 {
                residual.iter_mut().for_each(|number| *number *= scale);
            }
            if let Some(next) = next {
                normalise(self.isa, residual, &next.0, epsilon, normed);
            }
        });
    }

    fn keep_logit_rows<const N: usize>(&self, step: HostStep<'_>, buffers: [&mut Buffer; N]) {
        if step.rows.few(step.logit_rows).is_none() {
            return;
        }
        for buffer in buffers {
            let width = buffer.width;
            for (to, &from) in step.logit_rows.iter().enumerate() {
                buffer.data.copy_within(from * width..(from + 1) * width, to * width);
            }
            buffer.reshape(step.logit_rows.len(), width);
        }
    }

    fn of_logit_rows(&self, step: HostStep<'_>, body: impl FnOnce(HostStep<'_>)) {
        let Some([tokens, positions, sequences]) = step.rows.few(step.logit_rows) else {
            return body(step);
        };
        let logit_rows: Vec<usize> = (0..step.logit_rows.len()).collect();
        let rows =
            Rows { tokens: &tokens, positions: &positions, sequences: &sequences, ..step.rows };
        body(HostStep { rows, logit_rows: &logit_rows });
    }

    fn gather_norm(
        &self,
        x: &Buffer,
        step: HostStep<'_>,
        weight: &Vector,
        epsilon: f32,
        out: &mut Buffer,
    ) {
        let rows = step.logit_rows;
        let is_gathered = x.rows() < step.rows.len();
        out.reshape(rows.len(), x.width);
        self.each_row(out, 4 * rows.len() * x.width, |row, out| {
            let from = if is_gathered { row } else { rows[row] };
            normalise(self.isa, x.row(from), &weight.0, epsilon, out);
        });
    }

    /// A row of the result is a function of the row of `x` alone, bit for bit.
    fn matmul(&self, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        debug_assert_eq!(x.width, weights.inputs);
        out.reshape(x.rows(), weights.outputs);
        match &weights.tiles {
            Tiles::F32(tiles) => self.multiply_plain(x, tiles, out),
            #[cfg(target_arch = "x86_64")]
            Tiles::Bf16(tiles) if self.isa.multiplies_bf16() => {
                self.multiply_rounded(x, tiles, out);
            }
            Tiles::Bf16(tiles) => self.multiply_plain(x, tiles, out),
            Tiles::Q8_0(tiles) => self.multiply_blocks(x, tiles, out),
            Tiles::Int8(tiles) => self.multiply_int8(x, tiles, out),
            Tiles::Q4K(tiles) => self.multiply_blocks(x, tiles, out),
        }
    }

    fn matmul_gated(
        &self,
        x: &Buffer,
        weights: &Matrix,
        activation: Activation,
        products: &mut Buffer,
        out: &mut Buffer,
    ) {
        let width = weights.outputs / 2;
        match &weights.tiles {
            Tiles::Int8(tiles) if self.gates_panels(x.rows(), width) => {
                out.reshape(x.rows(), width);
                self.multiply_panels(x, tiles, Some(activation), out);
            }
            _ => {
                self.matmul(x, weights, products);
                self.gate_columns(products, activation, (products, width..2 * width), out);
            }
        }
    }

    fn rotate_and_store(
        &self,
        qkv: &mut Buffer,
        queries: &mut Buffer,
        norms: Option<&HeadNorms<Vector>>,
        rope: &Rope,
        step: HostStep<'_>,
        LayerPages { pages, layer }: LayerPages<&mut KvPages>,
    ) {
        let rows = step.rows;
        of_either!(pages, pages => self.store(qkv, norms, rope, rows, LayerPages { pages, layer }));
        // Queries stand first in each row, and attention looks no further.
        std::mem::swap(qkv, queries);
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
        self.turn_all(qkv, norm, rope, step.rows, head_dim);
        std::mem::swap(qkv, queries);
    }

    fn regroup(&self, buffer: &mut Buffer, width: usize) {
        buffer.reshape(buffer.data.len() / width, width);
    }

    fn gate_by(
        &self,
        gate: &Buffer,
        activation: Activation,
        (by, first): (&Buffer, usize),
        out: &mut Buffer,
    ) {
        self.gate_columns(gate, activation, (by, first..first + gate.width), out);
    }

    fn cap(&self, x: &mut Buffer, cap: f32) {
        let work = 16 * x.data.len();
        self.each_row(x, work, |_, row| cap_row(self.isa, cap, row));
    }

    fn attention(
        &self,
        queries: &Buffer,
        shape: AttentionShape,
        step: HostStep<'_>,
        LayerPages { pages, layer }: LayerPages<&KvPages>,
        out: &mut Buffer,
    ) {
        let rows = step.rows;
        of_either!(pages, pages => self.attend(queries, shape, rows, LayerPages { pages, layer }, out));
    }

    fn gate_heads(&self, x: &mut Buffer, gates: &Buffer) {
        Cpu::gate_heads(self, x, gates);
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
        self.recur(projected, weights, shape, step.rows, states, out);
    }

    fn draw(
        &self,
        logits: &mut Buffer,
        requests: &[Option<SamplingRequest>],
        _stage: &mut (),
    ) -> Result<Vec<Drawn>, OpsError> {
        Ok(draw_rows(self, logits.data.chunks_exact(logits.width.max(1)).collect(), requests))
    }

    fn read(&self, buffer: &Buffer, rows: usize) -> Result<Vec<f32>, OpsError> {
        Ok(buffer.data[..rows * buffer.width].to_vec())
    }
}

pub(super) fn add_row(sums: &mut [f32], addends: &[f32]) {
    sums.iter_mut().zip(addends).for_each(|(sum, addend)| *sum += addend);
}
