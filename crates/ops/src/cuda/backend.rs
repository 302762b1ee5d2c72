//! The GPU as a backend: operations are launches on the stream, done in their order.

use std::sync::PoisonError;

use rayon::prelude::*;

use super::arguments::Arguments;
use super::attention::Seen;
use super::delta_rule::States;
use super::kernels::Epilogue;
use super::launch::Launch;
use super::matrix::Matrix;
use super::pack::OUTPUTS;
use super::rotary::Heads;
use super::sampler::Drawer;
use super::scores::Scored;
use super::stage::{Stage, Step};
use super::{Buffer, Cuda, Pages, Rope, Vector};
use crate::checkpoint::{RawRow, RawTensor};
use crate::sampler::draw_token;
use crate::sampling::{Drawn, SamplingRequest, TokenLogprobs, are_sound};
use crate::{
    Activation, AttentionShape, Backend, BranchNorms, DeltaShape, DeltaWeights, HeadNorms,
    LayerPages, LayerStates, Machine, Numbers, OpsError, PageShape, Precision, Rotation, Rows,
    StateShape, StepLimits, StoredType,
};

impl Backend for Cuda {
    type Buffer = Buffer;
    type Matrix = Matrix;
    type Vector = Vector;
    type Rope = Rope;
    type Pages = Pages;
    type States = States;
    type Stage = Stage;
    type Step<'a> = Step;

    const MACHINE: Machine = Machine::Cuda;

    /// Engines on a GPU do not wait for one another: each has a stream.
    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T {
        self.pool.install(step)
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
        let rows = RawRow::all(parts, inputs);
        let group = |group: usize| {
            std::array::from_fn(|output| rows.get(group * OUTPUTS + output).copied())
        };
        self.pack_groups(group, rows.len(), inputs, precision)
    }

    /// Packs eight gates and their eight ups in turn, so that one lane gets both of a feature.
    fn pack_gated(
        &self,
        [gate, up]: &[RawTensor<'_>; 2],
        inputs: usize,
        precision: Precision,
    ) -> Result<Matrix, OpsError> {
        let features = gate.rows(inputs);
        let group = |group: usize| {
            std::array::from_fn(|output| {
                let part = if output < 8 { gate } else { up };
                let row = group * 8 + output % 8;
                (row < features).then_some(RawRow { part, row })
            })
        };
        self.pack_groups(group, 2 * features, inputs, precision)
    }

    fn vector(&self, values: Vec<f32>) -> Result<Vector, OpsError> {
        Ok(Vector(self.region_of(&values, "norms")?))
    }

    fn rope(&self, rotation: &Rotation, positions: usize) -> Result<Rope, OpsError> {
        let angles = rotation.angles(positions);
        let table = |numbers: &Vec<f32>| self.region_of(numbers, "rotary tables");
        Ok(Rope {
            cosines: table(&angles.cosines)?,
            sines: table(&angles.sines)?,
            growth: rotation.growth.map(|_| table(&angles.growth)).transpose()?,
            turned: rotation.inverse_frequencies.len(),
        })
    }

    fn pages(&self, shape: PageShape, _kept: StoredType, pages: usize) -> Result<Pages, OpsError> {
        self.check_heads(shape.kv_heads, shape)?;
        let wider = if self.in_f32 { 2 } else { 1 };
        let bytes = Machine::Cuda.page_bytes(shape, StoredType::Bf16) / 2 * pages * wider;
        let layers = shape.layers.max(1);
        Ok(Pages {
            keys: self.stream.allocate(bytes, "keys")?,
            values: self.stream.allocate(bytes, "values")?,
            kv_heads: shape.kv_heads,
            head_dim: shape.head_dim,
            layer_bytes: bytes / layers,
        })
    }

    fn states(&self, shape: StateShape, slots: usize) -> Result<States, OpsError> {
        self.new_states(shape, slots)
    }

    fn copy_state(&self, states: &mut States, from: u32, to: u32) {
        self.copy_slot(states, [from, to]);
    }

    fn buffer(&self, rows: usize, width: usize, numbers: Numbers) -> Result<Buffer, OpsError> {
        // Decoding steps are padded to buckets.
        let rows = rows.next_multiple_of(16);
        let numbers = match numbers {
            Numbers::Narrow if self.in_f32 => Numbers::Wide,
            numbers => numbers,
        };
        let bytes = Machine::Cuda.buffer_bytes(rows, width, numbers);
        Ok(Buffer {
            region: self.stream.allocate(bytes, "activations")?,
            rows: 0,
            width,
            stride: match numbers {
                Numbers::Wide | Numbers::Passing => width,
                Numbers::Narrow => width.next_multiple_of(32),
            },
            is_wide: numbers != Numbers::Narrow,
        })
    }

    fn stage(&self, shape: PageShape, heads: usize, limits: StepLimits) -> Result<Stage, OpsError> {
        self.check_heads(heads, shape)?;
        Stage::new(self, shape, heads, limits)
    }

    fn compute<'a>(
        &self,
        rows: Rows<'a>,
        logit_rows: &'a [usize],
        stage: &'a mut Stage,
        body: impl FnMut(Self::Step<'a>),
    ) {
        let step = stage.send(&self.stream, rows, logit_rows);
        stage.run(&self.stream, step, body);
    }

    fn embed(&self, table: &Matrix, step: Step, scale: f32, out: &mut Buffer) {
        out.set_shape(step.rows, table.inputs);
        let launch = Launch::by_row(self.kernels.embed[table.format as usize], step.rows);
        let arguments = table
            .arguments()
            .address(step.at.tokens)
            .float(scale)
            .int(table.inputs)
            .int(table.k_tiles())
            .region(&out.region);
        self.stream.launch(launch, arguments);
    }

    fn rms_norm(&self, x: &Buffer, weight: &Vector, epsilon: f32, out: &mut Buffer) {
        self.norm(x, (0, x.rows), (weight, epsilon), out);
    }

    fn add_norm(
        &self,
        residual: &mut Buffer,
        branch: &Buffer,
        norms: BranchNorms<'_, Vector>,
        normed: &mut Buffer,
    ) {
        let BranchNorms { post, scale, next, epsilon } = norms;
        if next.is_some() {
            normed.set_rows(residual.rows);
        }
        let arguments = Arguments::default()
            .address(residual.address())
            .region(&branch.region)
            .maybe(post.map(|post| &post.0))
            .maybe(next.map(|next| &next.0))
            .float(epsilon)
            .float(scale)
            .int(residual.width)
            .rows(normed);
        let launch = Launch::by_row(self.kernels.add_norm, residual.rows);
        self.stream.launch(launch, arguments);
    }

    fn keep_logit_rows<const N: usize>(&self, step: Step, buffers: [&mut Buffer; N]) {
        if let Some(few) = step.few() {
            buffers.into_iter().for_each(|buffer| self.keep(buffer, few));
        }
    }

    fn of_logit_rows(&self, step: Step, body: impl FnOnce(Step)) {
        body(step.few().unwrap_or(step));
    }

    fn gather_norm(&self, x: &Buffer, step: Step, weight: &Vector, epsilon: f32, out: &mut Buffer) {
        let is_gathered = step.gives_few && x.rows == step.logit_rows;
        let indices = if is_gathered { 0 } else { step.at.indices };
        self.norm(x, (indices, step.logit_rows), (weight, epsilon), out);
    }

    fn matmul(&self, x: &Buffer, weights: &Matrix, out: &mut Buffer) {
        self.multiply(x, weights, Epilogue::Plain, out);
    }

    fn matmul_gated(
        &self,
        x: &Buffer,
        weights: &Matrix,
        activation: Activation,
        _products: &mut Buffer,
        out: &mut Buffer,
    ) {
        self.multiply(x, weights, Epilogue::Gated(activation), out);
    }

    fn rotate_and_store(
        &self,
        qkv: &mut Buffer,
        queries: &mut Buffer,
        norms: Option<&HeadNorms<Vector>>,
        rope: &Rope,
        step: Step,
        LayerPages { pages, layer }: LayerPages<&mut Pages>,
    ) {
        let heads = Heads {
            norms: norms.map_or([None; 3], |norms| {
                [Some(&norms.query), Some(&norms.key), norms.value.as_ref()]
            }),
            epsilon: norms.map_or(0.0, |norms| norms.epsilon),
            rope,
            head_dim: pages.head_dim,
            kv_heads: pages.kv_heads,
            pages: pages.layer(layer),
        };
        self.turn(qkv, queries, step, heads);
    }

    fn rotate(
        &self,
        qkv: &mut Buffer,
        queries: &mut Buffer,
        norm: Option<(&Vector, f32)>,
        rope: &Rope,
        step: Step,
        head_dim: usize,
    ) {
        let (weight, epsilon) = norm.unzip();
        let (norms, epsilon) = ([weight, None, None], epsilon.unwrap_or_default());
        let heads = Heads { norms, epsilon, rope, head_dim, kv_heads: 0, pages: [0; 2] };
        self.turn(qkv, queries, step, heads);
    }

    fn regroup(&self, buffer: &mut Buffer, width: usize) {
        buffer.set_shape(buffer.rows * buffer.width / width, width);
    }

    fn narrow<'a>(&self, x: &'a Buffer, room: &'a mut Buffer) -> &'a Buffer {
        self.round(x, room);
        room
    }

    fn gate_by(
        &self,
        gate: &Buffer,
        activation: Activation,
        by: (&Buffer, usize),
        out: &mut Buffer,
    ) {
        self.gate_columns(gate, activation, by, out);
    }

    fn cap(&self, x: &mut Buffer, cap: f32) {
        self.press(x, cap);
    }

    fn attention(
        &self,
        queries: &Buffer,
        shape: AttentionShape,
        step: Step,
        pages: LayerPages<&Pages>,
        out: &mut Buffer,
    ) {
        self.attend(Seen { queries: &queries.region, shape, step, layer: pages }, out);
    }

    fn gate_heads(&self, x: &mut Buffer, gates: &Buffer) {
        self.gate(x, gates);
    }

    fn delta_rule(
        &self,
        projected: &mut Buffer,
        weights: &DeltaWeights<Vector>,
        shape: DeltaShape,
        step: Step,
        states: LayerStates<&mut States>,
        out: &mut Buffer,
    ) {
        self.recur(projected, weights, shape, step, states, out);
    }

    fn draw(
        &self,
        logits: &mut Buffer,
        requests: &[Option<SamplingRequest>],
        stage: &mut Stage,
    ) -> Result<Vec<Drawn>, OpsError> {
        if requests.is_empty() {
            self.stream.synchronise()?;
            return Ok(Vec::new());
        }
        // What is added to logits is added by the host, which draws then.
        let adds = |request: &Option<SamplingRequest>| {
            request.as_ref().is_some_and(|request| !request.added.is_empty())
        };
        let last = requests.iter().rposition(adds);
        let read = last.map(|last| self.read(logits, last + 1)).transpose()?;
        let drawer = match &mut stage.drawer {
            Some(drawer) => drawer,
            empty => {
                let rows = logits.region.bytes() / 4 / logits.stride;
                empty.insert(Drawer::new(self, rows, logits.width)?)
            }
        };
        let mut drawn = drawer.draw(self, logits, requests)?;
        let rows = read.iter().flat_map(|read| read.chunks_exact(logits.width));
        for ((drawn, request), row) in drawn.iter_mut().zip(requests).zip(rows) {
            if let Some(request) = request.as_ref().filter(|request| !request.added.is_empty()) {
                drawn.token = draw_token(row, request);
            }
        }
        // A row from which nothing came may have had nothing to draw from.
        let is_lost = |(drawn, request): (&Drawn, &Option<SamplingRequest>)| {
            drawn.token.is_none() && request.is_some()
        };
        if let Some(last) = drawn.iter().zip(requests).rposition(is_lost) {
            let read = self.read(logits, last + 1)?;
            let rows = read.chunks_exact(logits.width);
            for ((drawn, request), row) in drawn.iter_mut().zip(requests).zip(rows) {
                drawn.is_broken = is_lost((&*drawn, request)) && !are_sound(row);
            }
        }
        self.score_draws(logits, requests, &mut drawn, &mut stage.scorer)?;
        Ok(drawn)
    }

    fn score(
        &self,
        logits: &Buffer,
        first: usize,
        wanted: &[(u32, usize)],
        stage: &mut Stage,
    ) -> Result<Vec<TokenLogprobs>, OpsError> {
        let rows = (first..).zip(wanted);
        let scored = rows.map(|(row, &(token, count))| Scored { row, token, count });
        let scored: Vec<Scored> = scored.collect();
        stage.scorer.score(self, logits, &scored)
    }

    fn read(&self, buffer: &Buffer, rows: usize) -> Result<Vec<f32>, OpsError> {
        if rows == 0 {
            self.stream.synchronise()?;
            return Ok(Vec::new());
        }
        debug_assert!(buffer.is_wide, "what only products read is not for others");
        let bytes = 4 * rows * buffer.stride;
        let mut kept = self.back.lock().unwrap_or_else(PoisonError::into_inner);
        let back = match &mut *kept {
            Some(back) if back.bytes().len() >= bytes => back,
            other => other.insert(self.stream.pin(bytes)?),
        };
        self.stream.download(&buffer.region, back, bytes)?;
        let numbers = back.bytes()[..bytes].as_chunks::<4>().0.iter();
        Ok(numbers.map(|number| f32::from_le_bytes(*number)).collect())
    }
}
