//! The gate of a feed-forward layer: `activation(gate) · up`.

use std::ops::Range;

use super::lanes::{LANES, Lanes, exp, vectorised};
use super::{Buffer, Cpu};
use crate::Activation;

impl Cpu {
    /// `activation(gate) · by`, of these columns of `by` and as many of the gate's first.
    pub(super) fn gate_columns(
        &self,
        gate: &Buffer,
        activation: Activation,
        (by, columns): (&Buffer, Range<usize>),
        out: &mut Buffer,
    ) {
        let (rows, width) = (gate.rows(), columns.len());
        out.reshape(rows, width);
        // An exponential is about sixteen multiply-adds.
        self.each_row(out, rows * width * 16, |row, out| {
            let by = &by.row(row)[columns.clone()];
            gate_row(self.isa, activation, &gate.row(row)[..width], by, out);
        });
    }
}

vectorised! {
    /// `cap · tanh(x / cap)` of each number of a row.
    pub(super) fn cap_row(cap: f32, row: &mut [f32]) = cap_row_kernel
}

#[inline(always)]
fn cap_row_kernel<L: Lanes>(cap: f32, row: &mut [f32]) {
    let (groups, rest) = row.as_chunks_mut::<LANES>();
    for group in groups {
        *group = cap_lanes(cap, L::from_array(group)).to_array();
    }
    if !rest.is_empty() {
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        cap_lanes(cap, L::from_array(&last)).store_first(rest);
    }
}

/// tanh(u) = 1 − 2 / (e²ᵘ + 1).
#[inline(always)]
fn cap_lanes<L: Lanes>(cap: f32, x: L) -> L {
    let one = L::splat(1.0);
    let power = exp(x.mul(L::splat(2.0 / cap)));
    one.sub(L::splat(2.0).div(power.add(one))).mul(L::splat(cap))
}

vectorised! {
    pub(super) fn gate_row(activation: Activation, gate: &[f32], up: &[f32], out: &mut [f32]) = gate_row_kernel
}

#[inline(always)]
fn gate_row_kernel<L: Lanes>(activation: Activation, gate: &[f32], up: &[f32], out: &mut [f32]) {
    let (gates, gate_rest) = gate.as_chunks::<LANES>();
    let (ups, up_rest) = up.as_chunks::<LANES>();
    let (outs, out_rest) = out.as_chunks_mut::<LANES>();
    for ((gate, up), out) in gates.iter().zip(ups).zip(outs) {
        *out = gate_lanes(activation, L::from_array(gate), L::from_array(up)).to_array();
    }
    if !gate_rest.is_empty() {
        let (mut gate, mut up) = ([0.0; LANES], [0.0; LANES]);
        gate[..gate_rest.len()].copy_from_slice(gate_rest);
        up[..up_rest.len()].copy_from_slice(up_rest);
        gate_lanes(activation, L::from_array(&gate), L::from_array(&up)).store_first(out_rest);
    }
}

/// `x · sigmoid(inner(x)) · up`.
#[inline(always)]
pub(super) fn gate_lanes<L: Lanes>(activation: Activation, x: L, up: L) -> L {
    const TWICE_ROOT: f32 = 2.0 * 0.797_884_6;
    let inner = match activation {
        Activation::Silu => x,
        // ½·(1 + tanh(u)) = sigmoid(2u), with u = √(2/π)·(x + 0.044715·x³).
        Activation::GeluTanh => {
            x.mul(x).mul(x).fma(L::splat(0.044_715), x).mul(L::splat(TWICE_ROOT))
        }
    };
    let denominator = exp(L::splat(0.0).sub(inner)).add(L::splat(1.0));
    x.div(denominator).mul(up)
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::*;

    #[test]
    fn a_cap_is_a_hyperbolic_tangent() {
        let x: Vec<f32> = (0..83).map(|i| (i as f32 - 41.0).powi(3) * 0.01).collect();
        let mut first = x.clone();
        cap_row(Isa::Portable, 30.0, &mut first);
        for isa in [Isa::Portable, Isa::detect()] {
            let mut capped = x.clone();
            cap_row(isa, 30.0, &mut capped);
            assert_eq!(capped, first);
            for (x, y) in x.iter().zip(capped) {
                let exact = 30.0 * (f64::from(*x) / 30.0).tanh();
                assert!((f64::from(y) - exact).abs() <= 1e-5, "{x}: {y}, not {exact}");
            }
        }
    }

    #[test]
    fn equal_the_formulas() {
        let gate: Vec<f32> = (0..83).map(|i| i as f32 * 0.5 - 20.0).collect();
        let up: Vec<f32> = (0..83).map(|i| 1.0 - i as f32 * 0.02).collect();
        let mut out = vec![0.0; 83];
        let check = |out: &[f32], formula: &dyn Fn(f64) -> f64| {
            for ((x, up), y) in gate.iter().zip(&up).zip(out) {
                let exact = formula(f64::from(*x)) * f64::from(*up);
                assert!(
                    (f64::from(*y) - exact).abs() <= 2e-6 * (1.0 + exact.abs()),
                    "{x}: {y}, not {exact}"
                );
            }
        };
        for isa in [Isa::Portable, Isa::detect()] {
            gate_row(isa, Activation::Silu, &gate, &up, &mut out);
            check(&out, &|x| x / (1.0 + (-x).exp()));
            gate_row(isa, Activation::GeluTanh, &gate, &up, &mut out);
            check(&out, &|x| {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3));
                0.5 * x * (1.0 + inner.tanh())
            });
        }
    }
}
