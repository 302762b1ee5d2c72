//! The interface between decoder and backends: the decoder is written once against it.

use std::fmt::Debug;

use super::sampler::logprobs_of_rows;
use super::sampling::{Drawn, SamplingRequest, TokenLogprobs, are_sound};
use super::{
    Activation, AttentionShape, BranchNorms, DeltaShape, DeltaWeights, Disjoint, HeadNorms,
    LayerPages, LayerStates, Machine, Numbers, PageShape, Precision, Rotation, Rows, StateShape,
    StepLimits, StoredType,
};
use crate::OpsError;
use crate::checkpoint::RawTensor;

/// The rows of a step, and which of them give logits, for machines that share the host's memory.
#[derive(Clone, Copy, Debug)]
pub struct HostStep<'a> {
    pub rows: Rows<'a>,
    pub logit_rows: &'a [usize],
}

/// A kind of machine. Clones share it.
///
/// Operations do not return errors: an asynchronous machine reports earlier failures at [`Backend::draw`] and
/// [`Backend::read`].
pub trait Backend: Clone + Debug + Send + Sync + 'static {
    /// Activations, `rows × width`.
    type Buffer: Debug + Send + Sync;
    /// A linear layer's weights, `[outputs, inputs]`.
    type Matrix: Debug + Send + Sync;
    /// A norm's weight, `[width]`.
    type Vector: Debug + Send + Sync;
    /// What a position does to queries and keys.
    type Rope: Debug + Send + Sync;
    /// The pool of pages of keys and values, all layers, zeroed.
    type Pages: Debug + Send + Sync;
    /// The pool of sequences' states of recurrent layers.
    type States: Debug + Send + Sync;
    /// What a step's rows pass through on their way to the machine, and what is kept from one step to the next.
    type Stage: Debug + Send + Sync;
    /// The rows of a step as operations take them.
    type Step<'a>: Copy;

    const MACHINE: Machine;

    /// Runs one step's host code, on the threads that it may use.
    fn run<T: Send>(&self, step: impl FnOnce() -> T + Send) -> T;
    /// Calls `body` with each number below `count` once, on the threads of the step under way.
    fn for_each(&self, count: usize, body: &(dyn Fn(usize) + Sync));
    /// What `body` makes of each item, in order; on the threads of the step under way.
    fn map_each<T: Send, R: Send>(&self, items: Vec<T>, body: impl Fn(T) -> R + Sync) -> Vec<R> {
        let mut results: Vec<Option<R>> = items.iter().map(|_| None).collect();
        let mut items: Vec<Option<T>> = items.into_iter().map(Some).collect();
        let (from, to) = (Disjoint::new(&mut items), Disjoint::new(&mut results));
        self.for_each(results.len(), &|index| {
            // SAFETY: there are so many items and results, and each number is given once.
            let (from, to) = unsafe { (from.slice(index, 1), to.slice(index, 1)) };
            to[0] = from[0].take().map(&body);
        });
        results.into_iter().flatten().collect()
    }

    /// Packs the rows of `parts` one after another; each part is row-major `[n, inputs]`.
    fn pack(
        &self,
        parts: &[RawTensor<'_>],
        inputs: usize,
        precision: Precision,
    ) -> Result<Self::Matrix, OpsError>;
    /// Packs the two halves of a gated layer for [`Backend::matmul_gated`].
    fn pack_gated(
        &self,
        gate_up: &[RawTensor<'_>; 2],
        inputs: usize,
        precision: Precision,
    ) -> Result<Self::Matrix, OpsError> {
        self.pack(gate_up, inputs, precision)
    }
    fn vector(&self, values: Vec<f32>) -> Result<Self::Vector, OpsError>;
    fn rope(&self, rotation: &Rotation, positions: usize) -> Result<Self::Rope, OpsError>;
    fn pages(
        &self,
        shape: PageShape,
        kept: StoredType,
        pages: usize,
    ) -> Result<Self::Pages, OpsError>;
    /// Has the system give the memory of pages that are still zero, where it gives memory only as it is used.
    fn touch(&self, _pages: &mut Self::Pages) {}
    /// So many states, each in a slot.
    fn states(&self, shape: StateShape, slots: usize) -> Result<Self::States, OpsError>;
    /// Copies the state of a slot to another one, in all layers.
    fn copy_state(&self, states: &mut Self::States, from: u32, to: u32);
    fn buffer(&self, rows: usize, width: usize, numbers: Numbers)
    -> Result<Self::Buffer, OpsError>;
    fn stage(
        &self,
        shape: PageShape,
        heads: usize,
        limits: StepLimits,
    ) -> Result<Self::Stage, OpsError>;

    /// Calls `body` with the step, or repeats what it did for one of the same form before.
    fn compute<'a>(
        &self,
        rows: Rows<'a>,
        logit_rows: &'a [usize],
        stage: &'a mut Self::Stage,
        body: impl FnMut(Self::Step<'a>),
    );

    /// The step's tokens' rows of an embedding table `[vocabulary, hidden]`, times `scale`.
    fn embed(&self, table: &Self::Matrix, step: Self::Step<'_>, scale: f32, out: &mut Self::Buffer);
    /// `out = x / √(mean(x²) + epsilon) · weight`, row by row.
    fn rms_norm(
        &self,
        x: &Self::Buffer,
        weight: &Self::Vector,
        epsilon: f32,
        out: &mut Self::Buffer,
    );
    /// `residual = scale · (residual + post(branch))`, or `branch` itself without a norm `post`; then `normed = next(residual)` where
    /// there is a norm `next`.
    fn add_norm(
        &self,
        residual: &mut Self::Buffer,
        branch: &Self::Buffer,
        norms: BranchNorms<'_, Self::Vector>,
        normed: &mut Self::Buffer,
    );
    /// Where no later layer keeps keys and values: leaves in each of `buffers` only the rows that give logits, one after another,
    /// where that saves the machine work.
    fn keep_logit_rows<const N: usize>(
        &self,
        _step: Self::Step<'_>,
        _buffers: [&mut Self::Buffer; N],
    ) {
    }
    /// Calls `body` with the step of the rows that [`Backend::keep_logit_rows`] leaves.
    fn of_logit_rows(&self, step: Self::Step<'_>, body: impl FnOnce(Self::Step<'_>)) {
        body(step);
    }
    /// The norm of the rows of `x` that give logits, one after another; of all where no others were kept.
    fn gather_norm(
        &self,
        x: &Self::Buffer,
        step: Self::Step<'_>,
        weight: &Self::Vector,
        epsilon: f32,
        out: &mut Self::Buffer,
    );
    /// `out[m, n] = Σ_k x[m, k] · weights[n, k]`.
    fn matmul(&self, x: &Self::Buffer, weights: &Self::Matrix, out: &mut Self::Buffer);
    /// `out = activation(gate) · up` of the products with a gated layer's weights; `products` is room for them.
    fn matmul_gated(
        &self,
        x: &Self::Buffer,
        weights: &Self::Matrix,
        activation: Activation,
        products: &mut Self::Buffer,
        out: &mut Self::Buffer,
    );
    /// Norms and rotates the queries and keys of `qkv` `[rows, (heads + 2 · kv_heads) · head_dim]`, leaves the queries
    /// in `queries`, and writes keys and values to their pages. The content of `qkv` is unspecified afterwards.
    fn rotate_and_store(
        &self,
        qkv: &mut Self::Buffer,
        queries: &mut Self::Buffer,
        norms: Option<&HeadNorms<Self::Vector>>,
        rope: &Self::Rope,
        step: Self::Step<'_>,
        pages: LayerPages<&mut Self::Pages>,
    );
    /// Norms and rotates queries alone, of `head_dim` numbers a head: their keys and values are in their pages already.
    fn rotate(
        &self,
        qkv: &mut Self::Buffer,
        queries: &mut Self::Buffer,
        norm: Option<(&Self::Vector, f32)>,
        rope: &Self::Rope,
        step: Self::Step<'_>,
        head_dim: usize,
    );
    /// Takes the numbers of `buffer` for rows of `width`.
    fn regroup(&self, buffer: &mut Self::Buffer, width: usize);
    /// `x`, wide, as products take it: in `room`, where they take narrow numbers.
    fn narrow<'a>(&self, x: &'a Self::Buffer, _room: &'a mut Self::Buffer) -> &'a Self::Buffer {
        x
    }
    /// `out = activation(gate) · by`, of those columns of `by` that begin at its number.
    fn gate_by(
        &self,
        gate: &Self::Buffer,
        activation: Activation,
        by: (&Self::Buffer, usize),
        out: &mut Self::Buffer,
    );
    /// `x = cap · tanh(x / cap)`.
    fn cap(&self, x: &mut Self::Buffer, cap: f32);
    /// Attention of each row over the pages of its sequence; `out` is `[rows, heads · head_dim]`.
    fn attention(
        &self,
        queries: &Self::Buffer,
        shape: AttentionShape,
        step: Self::Step<'_>,
        pages: LayerPages<&Self::Pages>,
        out: &mut Self::Buffer,
    );

    /// `x = x · sigmoid(gates)`.
    fn gate_heads(&self, x: &mut Self::Buffer, gates: &Self::Buffer);
    /// The gated delta rule (Yang, Kautz and Hatamizadeh, arXiv:2412.06464, equation 10) after its convolution, row after row of each
    /// sequence, from the sequence's state, which then is that after its last row that is no draft. A row at position 0 begins with
    /// zeros. `projected` is `[rows, shape.projected()]`, unspecified afterwards; `out` is `[rows, shape.values()]`, normed and gated.
    fn delta_rule(
        &self,
        projected: &mut Self::Buffer,
        weights: &DeltaWeights<Self::Vector>,
        shape: DeltaShape,
        step: Self::Step<'_>,
        states: LayerStates<&mut Self::States>,
        out: &mut Self::Buffer,
    );

    /// Samples a token for each row of logits that has a request.
    fn draw(
        &self,
        logits: &mut Self::Buffer,
        requests: &[Option<SamplingRequest>],
        stage: &mut Self::Stage,
    ) -> Result<Vec<Drawn>, OpsError>;
    /// Log-probabilities of tokens that are known, each under a row of logits from `first` on, and of so many of the
    /// likeliest; NaN where a row's logits are no numbers (where the machine tells).
    fn score(
        &self,
        logits: &Self::Buffer,
        first: usize,
        wanted: &[(u32, usize)],
        _stage: &mut Self::Stage,
    ) -> Result<Vec<TokenLogprobs>, OpsError> {
        let rows = first + wanted.len();
        let all = self.read(logits, rows)?;
        let width = all.len().checked_div(rows).unwrap_or(0).max(1);
        let own = &all[first * width..];
        let is_sound: Vec<bool> = own.chunks(width).map(are_sound).collect();
        let mut scores = logprobs_of_rows(self, own, width, wanted);
        for (score, _) in scores.iter_mut().zip(is_sound).filter(|(_, is_sound)| !is_sound) {
            score.chosen = f32::NAN;
        }
        Ok(scores)
    }
    /// The first `rows` rows of `buffer`, one after another.
    fn read(&self, buffer: &Self::Buffer, rows: usize) -> Result<Vec<f32>, OpsError>;
}
