//! Encoders on the CPU: embeddings, norms with a mean, biases and GELU, row by row.

use super::backend::add_row;
use super::lanes::{LANES, Lanes, exp, vectorised};
use super::{Buffer, Cpu, Disjoint, Vector};
use crate::{Biased, EncoderBackend, HostStep, LayerNorm, TextTables};

impl EncoderBackend for Cpu {
    fn embed_text(&self, tables: &TextTables<Cpu>, step: HostStep<'_>, out: &mut Buffer) {
        let rows = step.rows;
        let width = tables.words.inputs;
        out.reshape(rows.len(), width);
        self.each_row(out, 16 * rows.len() * width, |row, out| {
            let position = &tables.positions.0[rows.positions[row] as usize * width..][..width];
            let segment = &tables.segments.0[rows.segments[row] as usize * width..][..width];
            let token = rows.tokens[row] as usize;
            for (k, out) in out.iter_mut().enumerate() {
                *out = tables.words.weight(token, k) + segment[k] + position[k];
            }
        });
    }

    fn layer_norm(
        &self,
        x: &mut Buffer,
        branch: Option<Biased<'_, Cpu>>,
        norm: &LayerNorm<Vector>,
        normed: &mut Buffer,
    ) {
        let width = x.width;
        normed.reshape(x.rows(), width);
        let (rows, work) = (x.rows(), 8 * x.data.len());
        let (x, copy) = (Disjoint::new(&mut x.data), Disjoint::new(&mut normed.data));
        self.split(rows, work, |range| {
            for row in range {
                // SAFETY: each row is written by one thread alone.
                let (x, copy) =
                    unsafe { (x.slice(row * width, width), copy.slice(row * width, width)) };
                if let Some(Biased { products, bias }) = &branch {
                    let added = products.row(row).iter().zip(&bias.0);
                    x.iter_mut().zip(added).for_each(|(x, (y, bias))| *x += y + bias);
                }
                norm_row(self.isa, x, norm, copy);
                x.copy_from_slice(copy);
            }
        });
    }

    fn add_bias(&self, x: &mut Buffer, bias: &Vector) {
        let work = x.data.len();
        self.each_row(x, work, |_, row| {
            add_row(row, &bias.0);
        });
    }

    fn gelu(&self, Biased { products, bias }: Biased<'_, Cpu>, out: &mut Buffer) {
        out.reshape(products.rows(), products.width);
        // An exponential and its polynomial are about thirty multiply-adds.
        self.each_row(out, 30 * products.data.len(), |row, out| {
            gelu_row(self.isa, products.row(row), &bias.0, out);
        });
    }
}

vectorised! {
    fn norm_row(x: &[f32], norm: &LayerNorm<Vector>, out: &mut [f32]) = norm_row_kernel
}

#[inline(always)]
fn norm_row_kernel<L: Lanes>(x: &[f32], norm: &LayerNorm<Vector>, out: &mut [f32]) {
    let width = x.len() as f32;
    let mean = sum_of::<L>(x, 0.0, false) / width;
    let variance = sum_of::<L>(x, mean, true) / width;
    let scale = 1.0 / (variance + norm.epsilon).sqrt();
    let parts = x.iter().zip(&norm.weight.0).zip(&norm.bias.0);
    for (out, ((x, weight), bias)) in out.iter_mut().zip(parts) {
        *out = (x - mean) * scale * weight + bias;
    }
}

/// `Σ x`, or `Σ (x − mean)²`; the sum's tree depends on the width alone.
#[inline(always)]
fn sum_of<L: Lanes>(x: &[f32], mean: f32, squared: bool) -> f32 {
    let (groups, rest) = x.as_chunks::<LANES>();
    let mut sums = L::splat(0.0);
    for group in groups {
        sums = add_group(L::from_array(group), mean, squared, sums);
    }
    if !rest.is_empty() {
        let mut last = [mean; LANES];
        last[..rest.len()].copy_from_slice(rest);
        sums = add_group(L::from_array(&last), mean, squared, sums);
    }
    sums.sum()
}

#[inline(always)]
fn add_group<L: Lanes>(values: L, mean: f32, squared: bool, sums: L) -> L {
    if squared {
        let off = values.sub(L::splat(mean));
        off.fma(off, sums)
    } else {
        sums.add(values)
    }
}

vectorised! {
    fn gelu_row(x: &[f32], bias: &[f32], out: &mut [f32]) = gelu_row_kernel
}

#[inline(always)]
fn gelu_row_kernel<L: Lanes>(x: &[f32], bias: &[f32], out: &mut [f32]) {
    let (groups, rest) = x.as_chunks::<LANES>();
    let (biases, bias_rest) = bias.as_chunks::<LANES>();
    let (outs, out_rest) = out.as_chunks_mut::<LANES>();
    for ((x, bias), out) in groups.iter().zip(biases).zip(outs) {
        *out = gelu_lanes(L::from_array(x).add(L::from_array(bias))).to_array();
    }
    if !rest.is_empty() {
        let (mut x, mut bias) = ([0.0; LANES], [0.0; LANES]);
        x[..rest.len()].copy_from_slice(rest);
        bias[..bias_rest.len()].copy_from_slice(bias_rest);
        let all = gelu_lanes(L::from_array(&x).add(L::from_array(&bias))).to_array();
        out_rest.copy_from_slice(&all[..rest.len()]);
    }
}

/// `max(x, 0) − |x|/2 · erfc(|x|/√2)`, with `erfc(z) = t · e^(q(t) − z²)`, `t = 1/(1 + z/2)`, and q fitted by least
/// squares at Chebyshev's precision over z from 0 to 8: within 3·10⁻⁷ of erfc itself.
#[inline(always)]
fn gelu_lanes<L: Lanes>(x: L) -> L {
    const Q: [f32; 10] = [
        0.147_817_48,
        -0.689_287_8,
        1.159_033,
        -0.675_126_4,
        -0.118_427_7,
        0.032_908_42,
        0.019_826_446,
        0.390_606_73,
        0.998_064_5,
        -1.265_414_5,
    ];
    let size = x.max(L::splat(0.0).sub(x));
    let z = size.mul(L::splat(std::f32::consts::FRAC_1_SQRT_2));
    let t = L::splat(1.0).div(z.fma(L::splat(0.5), L::splat(1.0)));
    let mut q = L::splat(Q[0]);
    for coefficient in &Q[1..] {
        q = q.fma(t, L::splat(*coefficient));
    }
    let complement = t.mul(exp(q.sub(z.mul(z))));
    x.max(L::splat(0.0)).sub(size.mul(L::splat(0.5)).mul(complement))
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::*;

    #[test]
    fn gelu_equals_the_formula_and_itself_on_every_instruction_set() {
        let x: Vec<f32> = (0..4099).map(|i| i as f32 * 0.006 - 12.3).collect();
        let bias: Vec<f32> = (0..4099).map(|i| (i % 7) as f32 * 0.01).collect();
        let mut portable = vec![0.0; x.len()];
        gelu_row(Isa::Portable, &x, &bias, &mut portable);
        for isa in Isa::available() {
            let mut wide = vec![0.0; x.len()];
            gelu_row(isa, &x, &bias, &mut wide);
            assert_eq!(portable, wide);
        }
        for ((x, bias), y) in x.iter().zip(&bias).zip(&portable) {
            let x = f64::from(x + bias);
            let exact = 0.5 * x * libm::erfc(-x / 2f64.sqrt());
            assert!(
                (f64::from(*y) - exact).abs() <= 2e-7 * (0.1 + x.abs()),
                "{x}: {y}, not {exact}"
            );
        }
    }

    #[test]
    fn norms_equal_the_formula_and_themselves_on_every_instruction_set() {
        for width in [1, 8, 16, 17, 100] {
            let x: Vec<f32> = (0..width).map(|i| (i as f32 * 0.37).sin() * 3.0 + 50.0).collect();
            let norm = LayerNorm {
                weight: Vector((0..width).map(|i| 1.0 + i as f32 * 0.01).collect()),
                bias: Vector((0..width).map(|i| i as f32 * 0.1 - 2.0).collect()),
                epsilon: 1e-12,
            };
            let mut portable = vec![0.0; width];
            norm_row(Isa::Portable, &x, &norm, &mut portable);
            for isa in Isa::available() {
                let mut wide = vec![0.0; width];
                norm_row(isa, &x, &norm, &mut wide);
                assert_eq!(portable, wide);
            }
            let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / width as f64;
            let off = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
            let deviation = (off / width as f64 + 1e-12).sqrt();
            for (index, y) in portable.iter().enumerate() {
                let exact = (f64::from(x[index]) - mean) / deviation
                    * f64::from(norm.weight.0[index])
                    + f64::from(norm.bias.0[index]);
                // A mean that is rounded to f32 moves x by 4·10⁻⁶.
                assert!(width == 1 || (f64::from(*y) - exact).abs() <= 1e-5 * (1.0 + exact.abs()));
            }
        }
    }
}
