//! The delta rule and gated heads: the CPU's bits, in decoding steps and longer ones, with drafts, copies and neighbours.

use super::*;
use crate::{DeltaShape, DeltaWeights, LayerStates, StateRows, StateShape};

/// Heads that do not fill a CTA, and those of the published models.
pub const SHAPES: [DeltaShape; 3] = [
    DeltaShape { key_heads: 2, value_heads: 4, key_dim: 16, value_dim: 32, taps: 4 },
    DeltaShape { key_heads: 1, value_heads: 3, key_dim: 48, value_dim: 80, taps: 2 },
    DeltaShape { key_heads: 1, value_heads: 2, key_dim: 128, value_dim: 128, taps: 4 },
];

/// Of a sequence: its number, its slot, its rows from one to another, and how many of them are drafts.
type Part = (u64, u32, [usize; 3]);

/// A prompt cut in two beside another; then decoding, some of it in graphs. A draft is another row than what comes.
const STEPS: [&[Part]; 7] = [
    &[(0, 2, [0, 40, 3]), (1, 0, [0, 30, 0])],
    &[(1, 0, [30, 34, 1]), (0, 2, [37, 45, 0])],
    &[(0, 2, [45, 48, 2]), (1, 0, [33, 34, 0])],
    &[(1, 0, [34, 35, 0]), (0, 2, [46, 49, 1])],
    &[(0, 2, [48, 49, 0]), (1, 0, [35, 38, 2])],
    &[(0, 3, [49, 51, 0]), (2, 2, [0, 2, 0])],
    &[(0, 3, [51, 54, 0]), (2, 2, [2, 69, 0])],
];
/// The step before which the state in slot 2 is copied to slot 3.
const COPIED: usize = 5;

/// Queries to gates of size 1; strengths and steps of every size that matters.
fn projected(shape: DeltaShape, sequence: u64, row: usize) -> Vec<f32> {
    let mut numbers = noise(shape.projected(), 1000 * sequence + row as u64);
    let from = shape.channels() + shape.values();
    let size = [1.0, 30.0, 1e-3, 400.0, 5.0][row % 5];
    numbers[from..].iter_mut().for_each(|number| *number *= size);
    numbers
}

/// What all steps give.
pub fn run<B: Host>(ops: &B, shape: DeltaShape) -> Vec<f32> {
    let vector = |seed, count, base, size: f32| {
        let numbers = noise(count, seed).iter().map(|number| base + size * number).collect();
        ops.vector(numbers).unwrap()
    };
    let weights = DeltaWeights {
        convolution: vector(1, shape.taps * shape.channels(), 0.0, 1.0),
        rates: vector(2, shape.value_heads, 0.5, 0.1),
        step_biases: vector(3, shape.value_heads, 0.0, 1.0),
        norm: vector(4, shape.value_dim, 1.0, 0.2),
        epsilon: 1e-6,
    };
    let mut states = ops.states(StateShape { layers: 2, of_layer: shape }, 4).unwrap();
    let mut stage = ops.stage(SMALL_PAGES, 1, limits(70, 8, 96)).unwrap();
    let mut buffer = ops.buffer(70, shape.projected(), Numbers::Wide).unwrap();
    let mut out = ops.buffer(70, shape.values(), Numbers::Narrow).unwrap();
    let mut all = Vec::new();
    for (index, parts) in STEPS.iter().enumerate() {
        if index == COPIED {
            ops.copy_state(&mut states, 2, 3);
        }
        let (mut sequences, mut positions, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for (table, (sequence, _, [from, to, drafted])) in parts.iter().enumerate() {
            for row in *from..*to {
                sequences.push(table as u32);
                positions.push(row as u32);
                let seed = if row >= to - drafted { 9 } else { *sequence };
                numbers.extend(projected(shape, seed, row));
            }
        }
        let slots = parts.iter().map(|(_, slot, [.., drafted])| (*slot, *drafted as u32));
        let slots: Vec<StateRows> =
            slots.map(|(slot, drafted)| StateRows { slot, drafted }).collect();
        let rows = Rows {
            tokens: &positions,
            positions: &positions,
            sequences: &sequences,
            segments: &[],
            tables: &[&[0, 1, 2], &[3, 4, 5]],
            states: &slots,
        };
        ops.fill(&mut buffer, &numbers, shape.projected());
        ops.compute(rows, &[0], &mut stage, |step| {
            let layer = LayerStates { states: &mut states, layer: 1 };
            ops.delta_rule(&mut buffer, &weights, shape, step, layer, &mut out);
        });
        all.extend(ops.numbers(&out, positions.len(), Numbers::Narrow));
    }
    all
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn the_delta_rule_has_the_cpus_bits() {
    let cpu = Cpu::new(2).unwrap();
    for shape in SHAPES {
        let exact = cpu.run(|| run(&cpu, shape));
        assert!(exact.iter().all(|number| number.is_finite()), "{shape:?}");
        assert!(bits(&run(&gpu_in_f32(), shape)) == bits(&exact), "{shape:?}");
        let rounded: Vec<f32> = exact.into_iter().map(round).collect();
        assert!(bits(&run(&gpu(), shape)) == bits(&rounded), "{shape:?}, rounded");
    }
}

/// The CPU's are libm's.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn strengths_and_decays_have_the_cpus_bits() {
    let shape = SHAPES[0];
    let gpu = gpu();
    let (rows, heads) = (6000, shape.value_heads);
    let special =
        [0.0, -0.0, 1e-30, 0.34, -0.35, 0.52, 1.04, 40.0, 40.1, 88.7, 709.0, -745.0, -1e30];
    let mut numbers = noise(rows * shape.projected(), 5);
    for (row, numbers) in numbers.chunks_exact_mut(shape.projected()).enumerate() {
        let size = 2.0f32.powi(row as i32 % 40 - 30);
        let special = special.get(row);
        let scaled = numbers[shape.projected() - 2 * heads..].iter_mut();
        scaled.for_each(|number| *number = special.copied().unwrap_or(*number * size));
    }
    let buffer = gpu.hold(&numbers, shape.projected(), Numbers::Wide);
    let rates: Vec<f32> = (0..heads).map(|head| 0.01 + head as f32 * 0.7).collect();
    let vector = |numbers| gpu.vector(numbers).unwrap();
    gpu.activate(&buffer, &vector(rates.clone()), &vector(vec![0.0; heads]), shape);
    let found = gpu.read(&buffer, rows).unwrap();
    let rows = found.chunks_exact(shape.projected()).zip(numbers.chunks_exact(shape.projected()));
    for (found, given) in rows {
        let [found, given] =
            [found, given].map(|row| row[shape.projected() - 2 * heads..].split_at(heads));
        for (head, rate) in rates.iter().enumerate() {
            let (x, step) = (f64::from(given.0[head]), f64::from(given.1[head]));
            let strength = (1.0 / (1.0 + libm::exp(-x))) as f32;
            let step_size = if step > 40.0 { step } else { libm::log1p(libm::exp(step)) };
            let decay = libm::exp(-f64::from(*rate) * step_size) as f32;
            assert_eq!(found.0[head].to_bits(), strength.to_bits(), "{x}");
            assert_eq!(found.1[head].to_bits(), decay.to_bits(), "{step}");
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn heads_are_gated_as_on_the_cpu() {
    fn run<B: Host>(ops: &B, width: usize) -> Vec<f32> {
        let mut x = ops.hold(&noise(5 * width, 1), width, Numbers::Narrow);
        let gates: Vec<f32> = noise(5 * width, 2).iter().map(|gate| 20.0 * gate).collect();
        ops.gate_heads(&mut x, &ops.hold(&gates, width, Numbers::Wide));
        ops.numbers(&x, 5, Numbers::Narrow)
    }
    let cpu = Cpu::new(1).unwrap();
    for width in [48, 1024] {
        let exact: Vec<f32> = run(&cpu, width).into_iter().map(round).collect();
        assert!(bits(&run(&gpu(), width)) == bits(&exact), "{width}");
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn what_kernels_do_not_take_is_refused() {
    let gpu = gpu();
    for shape in [DeltaShape { key_dim: 256, ..SHAPES[0] }, DeltaShape { taps: 5, ..SHAPES[0] }] {
        let refused = gpu.states(StateShape { layers: 1, of_layer: shape }, 1);
        assert!(refused.unwrap_err().to_string().contains("delta rule"));
    }
}
