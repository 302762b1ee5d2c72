//! What is done number by number has the CPU's bits, rounded where products read it.

use super::*;
use crate::Activation;

const ROWS: usize = 5;

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
        ops.gate_by(&gate, activation, &by, 2 * width, &mut out);
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
