//! The delta rule against its formula, and the same bits however rows are cut into steps.

use super::delta_rule::States;
use super::{Buffer, Cpu, Isa, Vector};
use crate::{
    Backend, DeltaShape, DeltaWeights, HostStep, LayerStates, Rows, StateRows, StateShape,
};

const SHAPE: DeltaShape =
    DeltaShape { key_heads: 2, value_heads: 4, key_dim: 16, value_dim: 32, taps: 4 };
const ROWS: usize = 45;

/// Numbers that look random, between −1 and 1.
fn numbers(salt: usize, count: usize) -> Vec<f32> {
    (0..count).map(|index| ((index * 7919 + salt * 104_729) as f32 * 0.618).sin()).collect()
}

fn weights() -> DeltaWeights<Vector> {
    DeltaWeights {
        convolution: Vector(numbers(1, SHAPE.taps * SHAPE.channels())),
        rates: Vector(numbers(2, SHAPE.value_heads).iter().map(|x| 0.3 + 0.2 * x).collect()),
        step_biases: Vector(numbers(3, SHAPE.value_heads)),
        norm: Vector(numbers(4, SHAPE.value_dim).iter().map(|x| 1.0 + x).collect()),
        epsilon: 1e-6,
    }
}

fn projected(sequence: usize, row: usize) -> Vec<f32> {
    numbers(100 * sequence + row + 5, SHAPE.projected())
}

fn states(cpu: &Cpu, slots: usize) -> States {
    cpu.states(StateShape { layers: 2, of_layer: SHAPE }, slots).unwrap()
}

/// What the rows give in one step: of each sequence its slot, the rows from one to another, and how many of them are drafts.
fn step(cpu: &Cpu, states: &mut States, parts: &[(usize, u32, [usize; 3])]) -> Vec<Vec<f32>> {
    let (mut sequences, mut positions, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
    for (table, (sequence, _, [from, to, drafted])) in parts.iter().enumerate() {
        for row in *from..*to {
            sequences.push(table as u32);
            positions.push(row as u32);
            // Drafts are other rows than those that will come.
            let is_draft = row >= to - drafted;
            numbers.push(projected(if is_draft { 77 } else { *sequence }, row));
        }
    }
    let own = parts
        .iter()
        .map(|(_, slot, [.., drafted])| StateRows { slot: *slot, drafted: *drafted as u32 });
    let own: Vec<StateRows> = own.collect();
    let mut buffer = Buffer::default();
    buffer.reshape(numbers.len(), SHAPE.projected());
    buffer.rows_mut().zip(&numbers).for_each(|(to, from)| to.copy_from_slice(from));
    let rows = Rows {
        tokens: &vec![0; numbers.len()],
        positions: &positions,
        sequences: &sequences,
        segments: &[],
        tables: &[],
        states: &own,
    };
    let mut out = Buffer::default();
    let (step, layer) = (HostStep { rows, logit_rows: &[] }, LayerStates { states, layer: 1 });
    cpu.run(|| cpu.delta_rule(&mut buffer, &weights(), SHAPE, step, layer, &mut out));
    (0..numbers.len()).map(|row| out.row(row).to_vec()).collect()
}

/// The whole sequence by the formula, in f64.
fn formula(sequence: usize) -> Vec<Vec<f64>> {
    let DeltaShape { key_heads, value_heads, key_dim, value_dim, taps } = SHAPE;
    let (weights, channels) = (weights(), SHAPE.channels());
    let raw: Vec<Vec<f64>> = (0..ROWS)
        .map(|row| projected(sequence, row).into_iter().map(f64::from).collect())
        .collect();
    let silu = |x: f64| x / (1.0 + (-x).exp());
    let mut matrices = vec![vec![vec![0.0; value_dim]; key_dim]; value_heads];
    let mut all = Vec::new();
    for row in 0..ROWS {
        let mixed: Vec<f64> = (0..channels)
            .map(|channel| {
                let tap = |tap: usize| {
                    let from = (row + tap + 1).checked_sub(taps)?;
                    Some(
                        f64::from(weights.convolution.0[tap * channels + channel])
                            * raw[from][channel],
                    )
                };
                silu((0..taps).filter_map(tap).sum())
            })
            .collect();
        let mut out = Vec::new();
        for (head, matrix) in matrices.iter_mut().enumerate() {
            let key_head = head / (value_heads / key_heads);
            let unit = |start: usize| {
                let part = &mixed[start + key_head * key_dim..][..key_dim];
                let length = (part.iter().map(|x| x * x).sum::<f64>() + 1e-6).sqrt();
                part.iter().map(|x| x / length).collect::<Vec<f64>>()
            };
            let (query, key) = (unit(0), unit(key_heads * key_dim));
            let value = &mixed[2 * key_heads * key_dim + head * value_dim..][..value_dim];
            let gate = &raw[row][channels + head * value_dim..][..value_dim];
            let rest = &raw[row][channels + SHAPE.values()..];
            let strength = 1.0 / (1.0 + (-rest[head]).exp());
            let inner = rest[value_heads + head] + f64::from(weights.step_biases.0[head]);
            let decay = (-f64::from(weights.rates.0[head]) * inner.exp().ln_1p()).exp();
            let mut read = vec![0.0; value_dim];
            for column in 0..value_dim {
                let held: f64 = (0..key_dim).map(|k| decay * matrix[k][column] * key[k]).sum();
                let written = strength * (value[column] - held);
                for k in 0..key_dim {
                    matrix[k][column] = decay * matrix[k][column] + key[k] * written;
                    read[column] += matrix[k][column] * query[k] / (key_dim as f64).sqrt();
                }
            }
            let mean = read.iter().map(|x| x * x).sum::<f64>() / value_dim as f64;
            let normed = read.iter().zip(&weights.norm.0).zip(gate).map(|((x, weight), gate)| {
                x / (mean + 1e-6).sqrt() * f64::from(*weight) * silu(*gate)
            });
            out.extend(normed);
        }
        all.push(out);
    }
    all
}

#[test]
fn equals_the_formula_and_itself_on_every_instruction_set() {
    let whole = |cpu: &Cpu| step(cpu, &mut states(cpu, 1), &[(0, 0, [0, ROWS, 0])]);
    let all: Vec<_> =
        Isa::available().into_iter().map(|isa| whole(&Cpu::with(2, isa).unwrap())).collect();
    assert!(all.iter().all(|other| *other == all[0]));
    for (row, (found, exact)) in all[0].iter().zip(formula(0)).enumerate() {
        for (found, exact) in found.iter().zip(exact) {
            assert!(
                (f64::from(*found) - exact).abs() < 2e-5 * (1.0 + exact.abs()),
                "row {row}: {found}, not {exact}"
            );
        }
    }
}

#[test]
fn where_rows_are_cut_who_stands_beside_them_and_what_was_drafted_change_no_bit() {
    for threads in [1, 3] {
        let cpu = Cpu::new(threads).unwrap();
        let whole =
            [0, 1].map(|sequence| step(&cpu, &mut states(&cpu, 1), &[(sequence, 0, [0, ROWS, 0])]));
        for size in [1, 2, 3, 7, 44] {
            // What lies in slots before is nobody's.
            let mut pool = states(&cpu, 3);
            step(&cpu, &mut pool, &[(5, 0, [0, 9, 0]), (6, 2, [0, 9, 0])]);
            for start in (0..ROWS).step_by(size) {
                let end = ROWS.min(start + size);
                let drafted = [0, 4, 1][start / size % 3];
                let parts = [(1, 2, [start, end + drafted, drafted]), (0, 0, [start, end, 0])];
                let rows = step(&cpu, &mut pool, &parts);
                let (second, first) = rows.split_at(end - start + drafted);
                assert_eq!(first, &whole[0][start..end], "{size}");
                assert_eq!(&second[..end - start], &whole[1][start..end], "{size}");
            }
        }
    }
}

#[test]
fn a_copy_goes_on_as_what_it_was_copied_from() {
    let cpu = Cpu::new(1).unwrap();
    let mut pool = states(&cpu, 2);
    step(&cpu, &mut pool, &[(0, 0, [0, 20, 0])]);
    pool.copy(0, 1);
    let on = step(&cpu, &mut pool, &[(0, 0, [20, 30, 0])]);
    assert_eq!(step(&cpu, &mut pool, &[(0, 1, [20, 30, 0])]), on);
}
