//! Single operations by hashes (`lanes/symbolic.rs`): products of every format at every number of rows up to the largest blocks, in the
//! blocks of every instruction set, row by row as alone.

use super::lanes::LANES;
use super::matmul_tests::{buffer, noise, pack};
use super::*;
use crate::{Activation, Backend};

static LIKE: [&Isa; 4] = [&Isa::Portable, &Isa::Avx2, &Isa::AvxVnni, &Isa::Avx512Vnni];

/// Those whose products with bf16 are their own, each beside itself.
static ROUNDING: [&Isa; 2] = [&Isa::Avx512Bf16, &Isa::Amx];

/// What `compute` makes of rows of `x`.
fn of_rows(x: &Buffer, rows: Range<usize>, compute: impl Fn(&Buffer, &mut Buffer)) -> Vec<u32> {
    let data = x.data[rows.start * x.width..rows.end * x.width].to_vec();
    let mut out = Buffer::default();
    compute(&Buffer { data, width: x.width }, &mut out);
    out.data.iter().map(|value| value.to_bits()).collect()
}

#[test]
fn products_of_any_number_of_rows_are_made_as_alone() {
    let stored = [StoredType::F32, StoredType::Bf16].map(Precision::from);
    let quantised = [Quantisation::Q8_0, Quantisation::Int8, Quantisation::Q4K]
        .map(|quantisation| Precision { quantisation, ..stored[0] });
    let mut cases: Vec<(Precision, &[&'static Isa])> = Vec::new();
    cases.extend(stored.into_iter().chain(quantised).map(|precision| (precision, &LIKE[..])));
    cases.extend(ROUNDING.iter().map(|like| (stored[1], std::slice::from_ref(like))));
    for (precision, like) in cases {
        // Whole tiles and not, a block of inputs and more.
        for (inputs, outputs) in [(70, 33), (300, 64)] {
            check_rows(precision, like, inputs, outputs);
        }
    }
}

fn check_rows(precision: Precision, like: &[&'static Isa], inputs: usize, outputs: usize) {
    let weights = pack(&noise(inputs * outputs, 3), inputs, precision);
    let x = buffer(513, inputs);
    let product =
        |cpu: &Cpu, x: &Buffer, out: &mut Buffer| cpu.run(|| cpu.matmul(x, &weights, out));
    let gated = |cpu: &Cpu, x: &Buffer, out: &mut Buffer| {
        let mut products = Buffer::default();
        cpu.run(|| cpu.matmul_gated(x, &weights, Activation::Silu, &mut products, out));
    };
    let one = Cpu::symbolic(1, like[0]).unwrap();
    let alone: Vec<Vec<u32>> = (0..x.rows())
        .map(|row| of_rows(&x, row..row + 1, |x, out| product(&one, x, out)))
        .collect();
    let first_gated = of_rows(&x, 0..1, |x, out| gated(&one, x, out));
    for (turn, rows) in (1..=26).chain([33, 64, 191, 193, 241, 257, 513]).enumerate() {
        for like in like {
            let cpu = Cpu::symbolic(1 + turn % 3, like).unwrap();
            let what = format!("{precision:?} {inputs}×{outputs} {like:?}");
            let given = of_rows(&x, 0..rows, |x, out| product(&cpu, x, out));
            for (row, given) in given.chunks(outputs).enumerate() {
                let parts = given.iter().zip(&alone[row]).position(|(a, b)| a != b);
                assert_eq!(parts, None, "{what}, row {row} of {rows}");
            }
            if outputs.is_multiple_of(2 * LANES) && rows <= 33 {
                let given = of_rows(&x, 0..rows, |x, out| gated(&cpu, x, out));
                assert!(given.starts_with(&first_gated), "{what}, {rows} rows, gated");
            }
        }
    }
}

/// Of bits, which rounding often makes equal, a test could not ask that.
#[test]
fn a_sum_in_another_order_is_another_hash_in_every_column() {
    let weights = pack(&noise(64 * 48, 3), 64, StoredType::F32.into());
    let x = buffer(4, 64);
    let cpu = Cpu::symbolic(1, &Isa::Avx512).unwrap();
    let half = |first: usize| {
        let mut data = x.data.clone();
        data.chunks_mut(32).skip(1 - first).step_by(2).for_each(|part| part.fill(0.0));
        let mut out = Buffer::default();
        cpu.matmul(&Buffer { data, width: 64 }, &weights, &mut out);
        out
    };
    let (mut sum, mut normed) = (half(0), Buffer::default());
    let norms = crate::BranchNorms { post: None, next: None, epsilon: 0.0 };
    cpu.add_norm(&mut sum, &half(1), norms, &mut normed);
    let whole = of_rows(&x, 0..4, |x, out| cpu.matmul(x, &weights, out));
    assert!(whole.iter().zip(&sum.data).all(|(whole, sum)| *whole != sum.to_bits()));
}
