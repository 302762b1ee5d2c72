//! q4_k: 4-bit weights in blocks of 32 under an 8-bit scale and minimum each, eight blocks under two f16: 4.6 bits a
//! weight.
//!
//! `weight = d · scale · value − dmin · minimum`: llama.cpp's format by its published definition, but that scales and
//! minima have eight bits for six, and sixteen columns are interleaved. A tile's last group may have fewer blocks.

use half::f16;

use super::{BLOCK, STEP_BYTES};
use crate::shared::lanes::{LANES, Lanes, vectorised};

/// Bytes of values in a block of sixteen columns.
pub const VALUES: usize = BLOCK * LANES / 2;

/// Blocks that share `d` and `dmin`.
pub const TOGETHER: usize = 8;

const LARGEST_VALUE: f32 = 15.0;
const LARGEST_SCALE: f32 = 255.0;

/// The byte of a block that weight `k` of column `lane` lies in, and how far up.
#[inline(always)]
pub fn place(lane: usize, k: usize) -> (usize, usize) {
    let step = k / 4;
    (step % 4 * STEP_BYTES + lane * 4 + k % 4, step / 4 * 4)
}

vectorised! {
    /// Rounds a tile's weights `[blocks · 32][16 columns]`.
    pub fn quantise(weights: &[[f32; LANES]], values: &mut [u8], scales: &mut [u8], units: &mut [u16]) = quantise_kernel
}

#[inline(always)]
fn quantise_kernel<L: Lanes>(
    weights: &[[f32; LANES]],
    values: &mut [u8],
    scales: &mut [u8],
    units: &mut [u16],
) {
    let groups = weights.chunks(TOGETHER * BLOCK);
    let values = values.chunks_mut(TOGETHER * VALUES);
    let scales = scales.chunks_mut(TOGETHER * 2 * LANES);
    let units = units.as_chunks_mut::<LANES>().0.chunks_exact_mut(2);
    for (((weights, values), scales), units) in groups.zip(values).zip(scales).zip(units) {
        let blocks = weights.as_chunks::<BLOCK>().0;
        let scales = scales.as_chunks_mut::<LANES>().0.chunks_exact_mut(2);
        let mut fits = [(L::splat(0.0), L::splat(0.0)); TOGETHER];
        let mut largest = (L::splat(0.0), L::splat(0.0));
        for (block, fit) in blocks.iter().zip(&mut fits) {
            *fit = fit_block::<L>(block);
            largest = (largest.0.max(fit.0), largest.1.max(fit.1));
        }
        let (d, d_inverse) = unit::<L>(largest.0, &mut units[0]);
        let (dmin, dmin_inverse) = unit::<L>(largest.1, &mut units[1]);
        let blocks = blocks.iter().zip(values.as_chunks_mut::<VALUES>().0);
        for (((block, values), scales), fit) in blocks.zip(scales).zip(fits) {
            let scale = round_to::<L>(fit.0.mul(d_inverse), LARGEST_SCALE);
            let minimum = round_to::<L>(fit.1.mul(dmin_inverse), LARGEST_SCALE);
            scales[0] = bytes::<L>(scale);
            scales[1] = bytes::<L>(minimum);
            let per_step = inverse::<L>(scale.mul(d));
            let minimum = minimum.mul(dmin);
            for (k, weights) in block.iter().enumerate() {
                let value = L::from_array(weights).add(minimum).mul(per_step);
                let value = bytes::<L>(round_to::<L>(value, LARGEST_VALUE));
                for (lane, value) in value.into_iter().enumerate() {
                    let (place, shift) = place(lane, k);
                    values[place] |= value << shift;
                }
            }
        }
    }
}

/// A block's scale and minimum, both at least zero, for the least squared error: of a few scales that spread the block
/// over about sixteen values, each corrected by linear regression on the values that it gives.
#[inline(always)]
fn fit_block<L: Lanes>(block: &[[f32; LANES]; BLOCK]) -> (L, L) {
    /// Steps between lowest and highest weight, around the fifteen that reach exactly.
    const SPREADS: [f32; 9] = [13.8, 14.1, 14.4, 14.7, 15.0, 15.3, 15.6, 15.9, 16.2];
    let zero = L::splat(0.0);
    let count = L::splat(BLOCK as f32);
    let (mut low, mut high) = (zero, zero);
    let (mut sum_x, mut sum_xx) = (zero, zero);
    for weights in block {
        let x = L::from_array(weights);
        low = low.min(x);
        high = high.max(x);
        sum_x = sum_x.add(x);
        sum_xx = x.fma(x, sum_xx);
    }
    let range = high.sub(low);
    // Without a scale, only a minimum.
    let mean = sum_x.mul(L::splat(1.0 / BLOCK as f32)).min(zero);
    let mut best = (zero, zero.sub(mean));
    let mut least_error = sum_xx.sub(count.mul(mean).mul(mean));
    for spread in SPREADS {
        let per_step = inverse::<L>(range).mul(L::splat(spread));
        let (mut sum_q, mut sum_qq, mut sum_qx) = (zero, zero, zero);
        for weights in block {
            let x = L::from_array(weights);
            let q = round_to::<L>(x.sub(low).mul(per_step), LARGEST_VALUE);
            sum_q = sum_q.add(q);
            sum_qq = q.fma(q, sum_qq);
            sum_qx = q.fma(x, sum_qx);
        }
        let determinant = count.mul(sum_qq).sub(sum_q.mul(sum_q));
        let scale = count.mul(sum_qx).sub(sum_x.mul(sum_q));
        let shift = sum_qq.mul(sum_x).sub(sum_q.mul(sum_qx));
        let determinant = inverse::<L>(determinant);
        let (scale, shift) = (scale.mul(determinant), shift.mul(determinant));
        // A minimum above zero cannot be kept: then the line goes through the origin.
        let straight = sum_qx.mul(inverse::<L>(sum_qq));
        let scale = select::<L>(shift, zero, scale, straight);
        let minimum = zero.sub(shift.min(zero));
        // Σ (scale · q − minimum − x)².
        let error = scale.mul(scale).mul(sum_qq).add(sum_xx);
        let error = minimum.mul(minimum).fma(count, error);
        let cross = minimum.mul(scale.mul(sum_q).sub(sum_x));
        let cross = scale.fma(sum_qx, cross);
        let error = cross.fma(L::splat(-2.0), error);
        let scale = scale.max(zero);
        best.0 = select::<L>(error, least_error, scale, best.0);
        best.1 = select::<L>(error, least_error, minimum, best.1);
        least_error = least_error.min(error);
    }
    best
}

/// What 255 times reaches `largest`, as f16 keeps it, rounded up, and its inverse. Most are subnormal, which costs nothing: scales
/// are rounded to multiples of what is kept.
#[inline(always)]
fn unit<L: Lanes>(largest: L, kept: &mut [u16; LANES]) -> (L, L) {
    let exact = largest.mul(L::splat(1.0 / LARGEST_SCALE)).to_array();
    let mut unit = [0.0; LANES];
    for ((kept, unit), exact) in kept.iter_mut().zip(&mut unit).zip(exact) {
        let mut rounded = f16::from_f32(exact);
        if rounded.to_f32() < exact {
            rounded = f16::from_bits(rounded.to_bits() + 1);
        }
        *kept = rounded.to_bits();
        *unit = rounded.to_f32();
    }
    let unit = L::from_array(&unit);
    (unit, inverse(unit))
}

/// 1/x, and 0 for what is not above zero.
#[inline(always)]
fn inverse<L: Lanes>(x: L) -> L {
    x.zero_below(L::splat(f32::MIN_POSITIVE), L::splat(1.0).div(x))
}

/// `x` where `a < b`, `y` elsewhere.
#[inline(always)]
fn select<L: Lanes>(a: L, b: L, x: L, y: L) -> L {
    x.sub(a.zero_below(b, x)).add(a.zero_below(b, y))
}

#[inline(always)]
fn round_to<L: Lanes>(x: L, largest: f32) -> L {
    x.round().max(L::splat(0.0)).min(L::splat(largest))
}

#[inline(always)]
fn bytes<L: Lanes>(x: L) -> [u8; LANES] {
    let mut bytes = [0; LANES];
    for (byte, x) in bytes.iter_mut().zip(x.to_array()) {
        *byte = x as u8;
    }
    bytes
}
