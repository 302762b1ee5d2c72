//! What is done number by number has the CPU's bits, rounded where products read it.

use super::*;
use crate::Activation;

const ROWS: usize = 5;
const WIDTH: usize = 700;

fn assert_same(found: &[f32], exact: impl Iterator<Item = f32>, what: &str) {
    assert!(bits(found) == bits(&exact.collect::<Vec<_>>()), "{what}");
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn columns_are_gated_and_numbers_are_capped_as_on_the_cpu() {
    fn gated<B: Host>(ops: &B, width: usize, activation: Activation) -> Vec<f32> {
        let spread = |seed| noise(3 * ROWS * width, seed).into_iter().map(|number| 9.0 * number);
        let by = ops.hold(&spread(1).collect::<Vec<_>>(), 3 * width, Numbers::Wide);
        let gate: Vec<f32> = spread(2).take(ROWS * width).collect();
        let mut out = ops.buffer(ROWS, width, Numbers::Narrow).unwrap();
        let gate = ops.hold(&gate, width, Numbers::Wide);
        ops.gate_by(&gate, activation, (&by, 2 * width), &mut out);
        ops.numbers(&out, ROWS, Numbers::Narrow)
    }
    fn capped<B: Host>(ops: &B, width: usize) -> Vec<f32> {
        let numbers: Vec<f32> = noise(ROWS * width, 3).iter().map(|x| 40.0 * x).collect();
        let mut x = ops.hold(&numbers, width, Numbers::Wide);
        ops.cap(&mut x, 30.0);
        ops.numbers(&x, ROWS, Numbers::Wide)
    }
    let (gpu, cpu) = (gpu(), Cpu::new(1).unwrap());
    for width in [16, 40, 256, 700] {
        for activation in [Activation::Silu, Activation::GeluTanh] {
            let exact = gated(&cpu, width, activation).into_iter().map(round);
            let what = format!("{activation:?}, {width} columns");
            assert_same(&gated(&gpu, width, activation), exact, &what);
        }
        assert_same(&capped(&gpu, width), capped(&cpu, width).into_iter(), "a cap");
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn wide_numbers_are_narrowed_and_grouped_anew() {
    let (gpu, width) = (gpu(), 72);
    let numbers = noise(ROWS * width, 4);
    let mut x = gpu.hold(&numbers, width, Numbers::Wide);
    let mut room = gpu.buffer(ROWS, width, Numbers::Narrow).unwrap();
    let narrowed = gpu.narrow(&x, &mut room);
    let found = gpu.numbers(narrowed, ROWS, Numbers::Narrow);
    assert_same(&found, numbers.iter().copied().map(round), "narrowed");
    gpu.regroup(&mut x, 24);
    assert_same(&gpu.numbers(&x, 3 * ROWS, Numbers::Wide), numbers.into_iter(), "in threes");
}

/// The rows that go on, wide and narrow, and the norm of the wide ones.
pub fn kept<B: Host>(ops: &B, rows: usize, logit_rows: &[usize]) -> [Vec<f32>; 3] {
    let positions: Vec<u32> = (0..rows as u32).collect();
    let step = Rows {
        tokens: &positions,
        positions: &positions,
        sequences: &vec![0; rows],
        segments: &[],
        tables: &[&[0, 1, 2, 3, 4, 5, 6]],
        states: &[],
    };
    let numbers = noise(rows * WIDTH, 5);
    let mut wide = ops.hold(&numbers, WIDTH, Numbers::Wide);
    let mut narrow = ops.hold(&numbers, WIDTH, Numbers::Narrow);
    let mut normed = ops.buffer(rows, WIDTH, Numbers::Narrow).unwrap();
    let weight = ops.vector(noise(WIDTH, 6)).unwrap();
    let mut stage = ops.stage(SMALL_PAGES, 1, limits(rows, 40, 224)).unwrap();
    ops.compute(step, logit_rows, &mut stage, |step| {
        ops.keep_logit_rows(step, [&mut wide, &mut narrow]);
        ops.gather_norm(&wide, step, &weight, 1e-6, &mut normed);
    });
    [(wide, Numbers::Wide), (narrow, Numbers::Narrow), (normed, Numbers::Narrow)]
        .map(|(buffer, kind)| ops.numbers(&buffer, logit_rows.len(), kind))
}

/// Some of many rows go on, narrow ones too, and are normed without being looked for again. None goes on of a step that is kept as a graph,
/// nor of one whose rows of logits are not in order.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn rows_that_give_logits_go_on_as_on_the_cpu() {
    let (gpu, cpu) = (gpu(), Cpu::new(2).unwrap());
    let spread: Vec<usize> = (0..200).step_by(6).chain([199]).collect();
    for logit_rows in [&[199][..], &[0, 1, 2, 190, 191], &[0, 7, 8, 9, 10, 11, 12, 13, 14], &spread]
    {
        let [wide, narrow, normed] = kept(&gpu, 200, logit_rows);
        let [exact_wide, exact_narrow, exact_normed] = kept(&cpu, 200, logit_rows);
        assert_same(&wide, exact_wide.into_iter(), "wide");
        assert_same(&narrow, exact_narrow.into_iter(), "narrow");
        assert_rounded(&normed, &exact_normed, "normed");
    }
    let goes_on = |rows: usize, logit_rows: &[usize]| {
        let sequences = super::sequences::Sequences::new(&[rows], 0);
        let tables = sequences.tables();
        let mut stage = gpu.stage(SMALL_PAGES, 1, limits(rows, 160, rows)).unwrap();
        let mut few = None;
        gpu.compute(sequences.step(0..rows, &tables), logit_rows, &mut stage, |step| {
            gpu.of_logit_rows(step, |step| few = Some([step.rows, step.decoding, step.blocks]));
        });
        few.unwrap()
    };
    assert_eq!(goes_on(65, &[3, 64]), [2, 2, 0]);
    assert_eq!(goes_on(65, &[]), [0, 0, 0]);
    assert_eq!(goes_on(64, &[3, 63])[0], 64, "a graph");
    assert_eq!(goes_on(65, &[64, 3])[0], 65, "out of order");
    assert_eq!(
        goes_on(200, &(0..129).collect::<Vec<_>>())[0],
        200,
        "more than attend chunk by chunk"
    );
}
