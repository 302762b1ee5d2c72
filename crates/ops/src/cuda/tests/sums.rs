//! The emulator's sums of products as Hopper's tensor cores make them, against the published rule written out plainly.

use super::super::driver::emulator::products;
use crate::sampling::philox;

/// What a warp's lane brings to a product of tiles, as kernels/emulator.h declares it.
type Operands = ([u32; 4], [u32; 2], [f32; 4]);

/// Significand and exponent; a number too small to be normal keeps the exponent of the least that is.
fn parts(number: f32) -> (f64, i32) {
    let exponent = ((number.to_bits() >> 23 & 0xFF) as i32).max(1) - 127;
    (f64::from(number) / 2f64.powi(exponent), exponent)
}

/// The sixteen products and what was there are cut off 25 bits below the largest exponent, and their sum to f32.
fn rule(a: &[f32; 16], b: &[f32; 16], c: f32) -> f32 {
    let products = a.iter().zip(b).map(|(a, b)| {
        let ((a, a_exponent), (b, b_exponent)) = (parts(*a), parts(*b));
        (a * b, a_exponent + b_exponent)
    });
    let all: Vec<(f64, i32)> = products.chain([parts(c)]).filter(|(s, _)| *s != 0.0).collect();
    let Some(top) = all.iter().map(|(_, exponent)| *exponent).max() else {
        return 0.0;
    };
    let cut = all.iter().map(|(s, exponent)| (s * 2f64.powi(25 + exponent - top)).trunc());
    cut_off(cut.sum::<f64>(), top - 25)
}

/// `whole` · 2^`power`, towards zero; powers are taken in two steps, for one may be too large.
fn cut_off(whole: f64, power: i32) -> f32 {
    let mut kept = whole.abs();
    let last = |kept: f64| (kept.log2().floor() as i32 - 23).max(-149 - power);
    if kept != 0.0 && last(kept) > 0 {
        let step = 2f64.powi(last(kept));
        kept = (kept / step).trunc() * step;
    }
    let value = kept * 2f64.powi(power / 2) * 2f64.powi(power - power / 2);
    (value * whole.signum()) as f32
}

/// A bf16 with an exponent below `spread` either way, or zero now and then.
fn number(seed: u64, index: u64, (middle, spread): (i32, u64)) -> f32 {
    let bits = philox(seed, index);
    if bits.is_multiple_of(11) {
        return 0.0;
    }
    let exponent = middle + ((bits >> 8) % (2 * spread + 1)) as i32 - spread as i32;
    let field = (exponent + 127).clamp(0, 254) as u32;
    f32::from_bits(
        (bits >> 40) as u32 & 0x8000_0000 | field << 23 | (bits >> 48) as u32 & 0x7F << 16,
    )
}

/// Of a lane, as PTX lays out the fragments of an m16n8k16 product.
fn operands(a: &[[f32; 16]; 16], b: &[[f32; 16]; 8], c: &[[f32; 8]; 16]) -> Vec<Operands> {
    let pair = |row: &[f32; 16], k: usize| row[k].to_bits() >> 16 | row[k + 1].to_bits();
    let lane = |lane: usize| {
        let (g, q) = (lane / 4, lane % 4 * 2);
        let a = [(g, q), (g + 8, q), (g, q + 8), (g + 8, q + 8)].map(|(row, k)| pair(&a[row], k));
        let b = [q, q + 8].map(|k| pair(&b[g], k));
        (a, b, [c[g][q], c[g][q + 1], c[g + 8][q], c[g + 8][q + 1]])
    };
    (0..32).map(lane).collect()
}

#[test]
fn sums_are_cut_off_as_hopper_cuts_them() {
    let ranges = [
        ((0, 0), 0),
        ((0, 4), 3),
        ((-3, 10), -5),
        ((0, 30), 0),
        ((-60, 9), -118),
        ((-70, 30), -140),
        ((50, 12), 100),
    ];
    for (round, (range, of_c)) in ranges.into_iter().cycle().take(210).enumerate() {
        let seed = round as u64;
        let a: [[f32; 16]; 16] = std::array::from_fn(|m| {
            std::array::from_fn(|k| number(3 * seed, (16 * m + k) as u64, range))
        });
        let b: [[f32; 16]; 8] = std::array::from_fn(|n| {
            std::array::from_fn(|k| number(3 * seed + 1, (16 * n + k) as u64, range))
        });
        let c: [[f32; 8]; 16] = std::array::from_fn(|m| {
            std::array::from_fn(|n| {
                let low = (philox(seed, (8 * m + n) as u64) & 0xFFFF) as u32;
                let high = number(3 * seed + 2, (8 * m + n) as u64, (of_c, range.1 + 3)).to_bits();
                f32::from_bits(if high << 1 == 0 { 0 } else { high | low })
            })
        });
        let found = products(&operands(&a, &b, &c));
        for (lane, sums) in found.iter().enumerate() {
            for (place, sum) in sums.iter().enumerate() {
                let (m, n) = (lane / 4 + place / 2 * 8, lane % 4 * 2 + place % 2);
                let exact = rule(&a[m], &b[n], c[m][n]);
                assert_eq!(
                    sum.to_bits(),
                    exact.to_bits(),
                    "round {round}, {m}, {n}: {sum:e}, not {exact:e}"
                );
            }
        }
    }
}

#[test]
fn what_is_no_number_stays_none() {
    let ones = |first: f32| {
        let mut row = [1.0; 16];
        row[0] = first;
        row
    };
    for (a, b, c, expected) in [
        (f32::INFINITY, 0.0, 0.0, 0x7FFF_FFFF),
        (f32::INFINITY, 1.0, f32::NEG_INFINITY, 0x7FFF_FFFF),
        (f32::INFINITY, -1.0, 5.0, 0xFF80_0000u32),
        (f32::NAN, 1.0, 5.0, 0x7FFF_FFFF),
        (1.0, 1.0, f32::NAN, 0x7FFF_FFFF),
        (0.0, 1.0, -1.0, 14f32.to_bits()),
    ] {
        let found = products(&operands(&[ones(a); 16], &[ones(b); 8], &[[c; 8]; 16]));
        assert_eq!(found[7][2].to_bits(), expected, "{a} · {b}, {c}");
    }
}
