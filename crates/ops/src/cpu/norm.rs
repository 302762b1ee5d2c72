//! Root-mean-square norms over a row; the sum's tree depends on the width alone.

use super::lanes::{LANES, Lanes, vectorised};

vectorised! {
    /// `out = x / √(mean(x²) + epsilon) · weight` of one row, or one head of it.
    ///
    /// Gemma's `1 + w` is folded into `weight` when it is loaded.
    pub(super) fn normalise(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) = normalise_kernel
}

#[inline(always)]
fn normalise_kernel<L: Lanes>(x: &[f32], weight: &[f32], epsilon: f32, out: &mut [f32]) {
    let (groups, rest) = x.as_chunks::<LANES>();
    let mut sums = L::splat(0.0);
    for group in groups {
        let values = L::from_array(group);
        sums = values.fma(values, sums);
    }
    if !rest.is_empty() {
        let mut last = [0.0; LANES];
        last[..rest.len()].copy_from_slice(rest);
        let values = L::from_array(&last);
        sums = values.fma(values, sums);
    }
    let scale = 1.0 / (sums.sum() / x.len() as f32 + epsilon).sqrt();
    for ((out, x), weight) in out.iter_mut().zip(x).zip(weight) {
        *out = x * scale * weight;
    }
}

#[cfg(test)]
mod tests {
    use super::super::Isa;
    use super::*;

    #[test]
    fn equals_the_formula_and_itself_on_every_instruction_set() {
        for width in [1, 8, 16, 17, 100] {
            let x: Vec<f32> = (0..width).map(|i| (i as f32 * 0.37).sin() * 3.0).collect();
            let weight: Vec<f32> = (0..width).map(|i| 1.0 + i as f32 * 0.01).collect();
            let mean = x.iter().map(|v| f64::from(*v).powi(2)).sum::<f64>() / width as f64;
            let mut portable = vec![0.0; width];
            normalise(Isa::Portable, &x, &weight, 1e-6, &mut portable);
            let mut wide = vec![0.0; width];
            normalise(Isa::detect(), &x, &weight, 1e-6, &mut wide);
            assert_eq!(portable, wide);
            for ((x, weight), y) in x.iter().zip(&weight).zip(&wide) {
                let exact = f64::from(*x) / (mean + 1e-6).sqrt() * f64::from(*weight);
                assert!((f64::from(*y) - exact).abs() <= 1e-6 * (1.0 + exact.abs()));
            }
        }
    }
}
