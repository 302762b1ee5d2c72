//! The gated delta rule: a short convolution, gates, and a matrix a head that each row decays, reads and writes, row after row.
//!
//! Sixteen columns of a head's matrix are taken through a few rows before the next ones: they stay in the first-level cache. No sum runs over
//! rows, so where a prompt is cut into steps shows in no bit.

use std::io;
use std::ops::Range;

use super::activation::{gate_lanes, gate_row};
use super::lanes::{LANES, Lanes, exp, vectorised};
use super::norm::normalise;
use super::slab::Slab;
use super::{Buffer, Cpu, Disjoint, Vector};
use crate::{Activation, DeltaShape, DeltaWeights, LayerStates, Rows, StateShape, blocks};

/// Rows that all columns of a matrix pass before the next rows: each lies in other pages of memory, and few of these are at hand.
const NEAR: usize = 8;
/// Added to the squares of a query or key before their root is taken.
const EPSILON: f32 = 1e-6;

/// States of sequences: of each layer and slot the convolution's inputs, then of each head its matrix, sixteen columns after sixteen.
#[derive(Debug)]
pub struct States {
    numbers: Slab<f32>,
    shape: StateShape,
    slots: usize,
}

impl States {
    pub fn new(shape: StateShape, slots: usize) -> io::Result<States> {
        let numbers = Slab::zeroed(shape.layers * slots * shape.of_layer.state())?;
        Ok(States { numbers, shape, slots })
    }

    fn start(&self, layer: usize, slot: u32) -> usize {
        (layer * self.slots + slot as usize) * self.shape.of_layer.state()
    }

    pub fn copy(&mut self, from: u32, to: u32) {
        let size = self.shape.of_layer.state();
        for layer in 0..self.shape.layers {
            let (from, to) = (self.start(layer, from), self.start(layer, to));
            self.numbers.copy_within(from..from + size, to);
        }
    }
}

/// The rows of one sequence in a step.
struct Stretch {
    rows: Range<usize>,
    /// Where its drafts begin.
    kept: usize,
    /// Where its state begins.
    state: usize,
    /// Whether it begins with zeros.
    is_new: bool,
}

fn runs(rows: Rows<'_>, states: &States, layer: usize) -> Vec<Stretch> {
    let run = |block: Range<usize>| {
        let own = rows.states[rows.sequences[block.start] as usize];
        Stretch {
            kept: block.end - own.drafted as usize,
            state: states.start(layer, own.slot),
            is_new: rows.positions[block.start] == 0,
            rows: block,
        }
    };
    blocks(rows.sequences, usize::MAX).into_iter().map(run).collect()
}

impl Cpu {
    pub(super) fn recur(
        &self,
        projected: &mut Buffer,
        weights: &DeltaWeights<Vector>,
        shape: DeltaShape,
        rows: Rows<'_>,
        LayerStates { states, layer }: LayerStates<&mut States>,
        out: &mut Buffer,
    ) {
        out.reshape(rows.len(), shape.values());
        let runs = runs(rows, states, layer);
        let states = Disjoint::new(&mut states.numbers);
        self.convolve(projected, &weights.convolution.0, shape, &runs, states);
        let (from, heads) = (shape.channels() + shape.values(), shape.value_heads);
        self.each_row(projected, 256 * rows.len() * heads, |_, row| {
            let (strengths, steps) = row[from..].split_at_mut(heads);
            let of_head = weights.rates.0.iter().zip(&weights.step_biases.0);
            for ((strength, step), (rate, bias)) in strengths.iter_mut().zip(steps).zip(of_head) {
                (*strength, *step) = (sigmoid(*strength), decay(*step + bias, *rate));
            }
        });
        self.write_and_read(projected, weights, shape, &runs, states, out);
    }

    /// Mixes each channel with its last inputs, in place, and norms queries and keys.
    fn convolve(
        &self,
        projected: &mut Buffer,
        weights: &[f32],
        shape: DeltaShape,
        runs: &[Stretch],
        states: Disjoint<f32>,
    ) {
        let DeltaShape { key_heads, value_heads, key_dim, value_dim, taps } = shape;
        let (channels, stride) = (shape.channels(), projected.width);
        let heads = 2 * key_heads + value_heads;
        let work = 16 * projected.data.len();
        let row_at = Disjoint::new(&mut projected.data);
        let length = (key_dim as f32).sqrt();
        self.split(runs.len() * heads, work, |range| {
            for task in range {
                let (run, head) = (&runs[task / heads], task % heads);
                let is_value = head >= 2 * key_heads;
                let width = if is_value { value_dim } else { key_dim };
                let start = match is_value {
                    true => 2 * key_heads * key_dim + (head - 2 * key_heads) * value_dim,
                    false => head * key_dim,
                };
                // SAFETY: the slot is there, and its sequence's alone; each of its heads has one thread.
                let kept = |tap| unsafe { states.slice(run.state + tap * channels + start, width) };
                // The inputs that a row sees, its own last.
                let mut inputs = vec![0.0; taps * width];
                if !run.is_new {
                    let taps = inputs.chunks_exact_mut(width).skip(1).enumerate();
                    taps.for_each(|(tap, inputs)| inputs.copy_from_slice(kept(tap)));
                }
                let keep = |inputs: &[f32]| {
                    let taps = inputs.chunks_exact(width).skip(1).enumerate();
                    taps.for_each(|(tap, inputs)| kept(tap).copy_from_slice(inputs));
                };
                // Of length 1, queries less by the root of their width.
                let is_query = head < key_heads;
                let lengths = vec![1.0 / if is_query { length * length } else { length }; width];
                let mut mixed = vec![0.0; width];
                for row in run.rows.clone() {
                    if row == run.kept {
                        keep(&inputs);
                    }
                    // SAFETY: as above, of the rows of its sequence.
                    let row = unsafe { row_at.slice(row * stride + start, width) };
                    inputs.copy_within(width.., 0);
                    inputs[(taps - 1) * width..].copy_from_slice(row);
                    mix(self.isa, &inputs, &weights[start..], channels, &mut mixed);
                    match is_value {
                        true => row.copy_from_slice(&mixed),
                        false => {
                            let epsilon = EPSILON / key_dim as f32;
                            normalise(self.isa, &mixed, &lengths, epsilon, row);
                        }
                    }
                }
                if run.kept == run.rows.end {
                    keep(&inputs);
                }
            }
        });
    }

    /// Takes the matrix of each sequence and head through its rows, and norms and gates what they read.
    fn write_and_read(
        &self,
        projected: &Buffer,
        weights: &DeltaWeights<Vector>,
        shape: DeltaShape,
        runs: &[Stretch],
        states: Disjoint<f32>,
        out: &mut Buffer,
    ) {
        let DeltaShape { key_heads, value_heads, key_dim, value_dim, taps } = shape;
        let (keys, values) = (key_heads * key_dim, 2 * key_heads * key_dim);
        let (gates, strengths) = (shape.channels(), shape.channels() + shape.values());
        let decays = strengths + value_heads;
        let (part, width) = (key_dim * LANES, out.width);
        let work = 4 * out.data.len() * key_dim;
        let to = Disjoint::new(&mut out.data);
        self.split(runs.len() * value_heads, work, |range| {
            let mut normed = vec![0.0; value_dim];
            for task in range {
                let (run, head) = (&runs[task / value_heads], task % value_heads);
                let key_head = head / (value_heads / key_heads) * key_dim;
                let own = run.state + (taps - 1) * shape.channels() + head * key_dim * value_dim;
                // SAFETY: the slot is there, and its sequence's alone; each of its heads has one thread.
                let kept = unsafe { states.slice(own, key_dim * value_dim) };
                if run.is_new {
                    kept.fill(0.0);
                }
                let mut walk = |rows: Range<usize>, matrix: &mut [f32]| {
                    for first in rows.clone().step_by(NEAR) {
                        let near = first..rows.end.min(first + NEAR);
                        for column in (0..value_dim).step_by(LANES) {
                            let matrix = &mut matrix[column * key_dim..][..part];
                            for row in near.clone() {
                                let (from, at) = (projected.row(row), head * value_dim + column);
                                let both = [key_head, keys + key_head];
                                let query_key = both.map(|at| &from[at..][..key_dim]);
                                let gates = [decays, strengths].map(|at| from[at + head]);
                                let value = &from[values + at..][..LANES];
                                // SAFETY: each head of a row has one thread.
                                let out = unsafe { to.slice(row * width + at, LANES) };
                                step(self.isa, matrix, query_key, value, gates, out);
                            }
                        }
                        for row in near {
                            // SAFETY: as above.
                            let out =
                                unsafe { to.slice(row * width + head * value_dim, value_dim) };
                            normalise(self.isa, out, &weights.norm.0, weights.epsilon, &mut normed);
                            let gate = &projected.row(row)[gates + head * value_dim..][..value_dim];
                            gate_row(self.isa, Activation::Silu, gate, &normed, out);
                        }
                    }
                };
                walk(run.rows.start..run.kept, kept);
                if run.kept < run.rows.end {
                    // What drafts write is not kept.
                    walk(run.kept..run.rows.end, &mut kept.to_vec());
                }
            }
        });
    }

    /// `x = x · sigmoid(gates)`.
    pub(super) fn gate_heads(&self, x: &mut Buffer, gates: &Buffer) {
        self.each_row(x, 16 * gates.data.len(), |row, x| {
            gate_by_sigmoid(self.isa, x, gates.row(row));
        });
    }
}

// Our own or libm's, because the C library's change with its version and the CPU.
fn sigmoid(x: f32) -> f32 {
    (1.0 / (1.0 + libm::exp(-f64::from(x)))) as f32
}

/// `e^(−rate · ln(1 + eˣ))`.
fn decay(x: f32, rate: f32) -> f32 {
    let x = f64::from(x);
    // Beyond, the logarithm is x in f64 too.
    let step = if x > 40.0 { x } else { libm::log1p(libm::exp(x)) };
    libm::exp(-f64::from(rate) * step) as f32
}

vectorised! {
    /// A row's channels: the sum of each one's `inputs` `[taps][width]` times its weights, the oldest first, through SiLU.
    fn mix(inputs: &[f32], weights: &[f32], channels: usize, out: &mut [f32]) = mix_kernel
}

#[inline(always)]
fn mix_kernel<L: Lanes>(inputs: &[f32], weights: &[f32], channels: usize, out: &mut [f32]) {
    let width = out.len();
    for (group, out) in out.as_chunks_mut::<LANES>().0.iter_mut().enumerate() {
        let mut sums = L::splat(0.0);
        for (tap, inputs) in inputs.chunks_exact(width).enumerate() {
            let weights = &weights[tap * channels..].as_chunks::<LANES>().0[group];
            let inputs = &inputs.as_chunks::<LANES>().0[group];
            sums = L::from_array(inputs).fma(L::from_array(weights), sums);
        }
        *out = gate_lanes(Activation::Silu, sums, L::splat(1.0)).to_array();
    }
}

vectorised! {
    /// One row of a sequence: sixteen columns of the matrix decay, give what they hold under the key, take the difference to the value, and
    /// give what they then hold under the query.
    fn step(matrix: &mut [f32], query_key: [&[f32]; 2], value: &[f32], decay_strength: [f32; 2], out: &mut [f32])
    = step_kernel
}

/// Rows of a matrix that are added side by side: an addition waits for the one before it.
const SIDE_BY_SIDE: usize = 4;

#[inline(always)]
fn step_kernel<L: Lanes>(
    matrix: &mut [f32],
    [query, key]: [&[f32]; 2],
    value: &[f32],
    [decay, strength]: [f32; 2],
    out: &mut [f32],
) {
    let decay = L::splat(decay);
    let rows = matrix.as_chunks_mut::<LANES>().0.as_chunks_mut::<SIDE_BY_SIDE>().0;
    let (keys, queries) = (key.as_chunks::<SIDE_BY_SIDE>().0, query.as_chunks::<SIDE_BY_SIDE>().0);
    let mut sums = [L::splat(0.0); SIDE_BY_SIDE];
    for (rows, key) in rows.iter().zip(keys) {
        for ((sum, row), key) in sums.iter_mut().zip(rows).zip(key) {
            *sum = L::from_array(row).mul(decay).fma(L::splat(*key), *sum);
        }
    }
    let held = sums[0].add(sums[1]).add(sums[2].add(sums[3]));
    let value = L::from_array(&value.as_chunks::<LANES>().0[0]);
    let written = value.sub(held).mul(L::splat(strength));
    let mut sums = [L::splat(0.0); SIDE_BY_SIDE];
    for ((rows, key), query) in rows.iter_mut().zip(keys).zip(queries) {
        for (((sum, row), key), query) in sums.iter_mut().zip(rows).zip(key).zip(query) {
            let numbers = written.fma(L::splat(*key), L::from_array(row).mul(decay));
            *row = numbers.to_array();
            *sum = numbers.fma(L::splat(*query), *sum);
        }
    }
    sums[0].add(sums[1]).add(sums[2].add(sums[3])).store_first(out);
}

vectorised! {
    fn gate_by_sigmoid(x: &mut [f32], gates: &[f32]) = gate_by_sigmoid_kernel
}

#[inline(always)]
fn gate_by_sigmoid_kernel<L: Lanes>(x: &mut [f32], gates: &[f32]) {
    for (x, gates) in x.chunks_mut(LANES).zip(gates.chunks(LANES)) {
        let (mut numbers, mut last) = ([0.0; LANES], [0.0; LANES]);
        numbers[..x.len()].copy_from_slice(x);
        last[..gates.len()].copy_from_slice(gates);
        let denominator = exp(L::splat(0.0).sub(L::from_array(&last))).add(L::splat(1.0));
        L::from_array(&numbers).div(denominator).store_first(x);
    }
}
