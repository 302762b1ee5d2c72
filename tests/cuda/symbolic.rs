//! Equal bits whatever the batch, shown of the kernels' operations instead of numbers, as `tests/engine/symbolic/` does of the CPU's: on
//! emulated GPUs whose numbers are hashes of how they were made (kernels/emulator_hashes.h).

#[path = "../engine/symbolic/bed.rs"]
mod bed;
#[path = "../engine/symbolic/faults.rs"]
mod faults;
#[path = "../engine/symbolic/witness.rs"]
mod witness;

use std::time::Instant;

use wardround::model::{Family, WantedPrecision};
use wardround::ops::Cuda;
use wardround::ops::cuda::{Buffer, Like, Vector};

use super::{FAMILIES, KEPT, tokens};
use bed::{ALL, Bed, MOST, Sequence};
use witness::Hashing;

/// GPUs whose schedules differ: as an H200 and an L4 are; of one multiprocessor and two, where each size is large and no kernel is split; of
/// sixteen, where some blocks of a product are split and some whole. Threads of some take turns at random.
const LIKE: [Like; 5] = [
    Like { multiprocessors: 132, warpgroups: true, clusters: true, turns: 0 },
    Like { multiprocessors: 58, warpgroups: false, clusters: false, turns: 7 },
    Like { multiprocessors: 16, warpgroups: true, clusters: true, turns: 0 },
    Like { multiprocessors: 1, warpgroups: false, clusters: false, turns: 0 },
    Like { multiprocessors: 2, warpgroups: true, clusters: false, turns: 5 },
];

/// Chunks beyond 24 rows: each size by each GPU, then the largest.
const LARGE: [usize; 26] = [
    40, 40, 40, 40, 40, 70, 70, 70, 70, 70, 129, 129, 129, 129, 129, 193, 193, 193, 193, 193, 200,
    256, 257, 300, 385, MOST,
];

fn gpus() -> [Cuda; 5] {
    LIKE.map(|like| Cuda::symbolic(like).unwrap())
}

impl Hashing for Cuda {
    fn shape(buffer: &Buffer) -> [usize; 2] {
        buffer.shape()
    }

    fn held(&self, buffer: &Buffer, rows: usize) -> Vec<f32> {
        self.held(buffer, rows).unwrap()
    }

    fn put(&self, rows: usize, numbers: &[f32], buffer: &mut Buffer) {
        self.put(rows, numbers, buffer);
    }

    fn numbers(&self, vector: &Vector) -> Vec<f32> {
        vector.numbers(self).unwrap()
    }
}

/// Weights of one kind by default, of every kind with all shapes.
fn check_shapes(index: usize) {
    let (family, started) = (FAMILIES[index], Instant::now());
    let all = std::env::var_os(ALL).is_some();
    let own = &KEPT[index..=index];
    for &quantisation in if all { &KEPT } else { own } {
        let wanted = WantedPrecision { quantisation, ..WantedPrecision::default() };
        let gpus = gpus();
        let mut bed = Bed::new(family, wanted, gpus[0].clone());
        // By one GPU after another: from the first, of all shapes, else from the third.
        let (most, chunks): (usize, &[usize]) = match (all, index) {
            (true, _) => (24, &LARGE),
            (false, 0) => (6, &[40, 40, 70, 70, 70, 193, 129, 129, 193]),
            (false, _) => (6, &[70, 70, 70, 40, 40]),
        };
        bed.all_shapes(most, chunks, &gpus);
        let notes = bed.ops.notes();
        let what = format!("{}, {quantisation}", family.name());
        if let Some(parting) = &notes.parting {
            panic!("{what}: {parting}");
        }
        let steps: usize = notes.steps.values().sum();
        let (compared, elapsed) = (notes.compared, started.elapsed());
        println!("{what}: {steps} steps, {compared} rows' operations compared, {elapsed:?}");
    }
}

#[test]
fn every_shape_of_a_step_of_gemma_computes_a_row_as_alone() {
    check_shapes(0);
}

#[test]
fn every_shape_of_a_step_of_llama_computes_a_row_as_alone() {
    check_shapes(1);
}

#[test]
fn every_shape_of_a_step_of_qwen3_computes_a_row_as_alone() {
    check_shapes(2);
}

#[test]
fn the_engine_computes_a_row_as_alone() {
    let [first, second, third, fourth, _] = gpus();
    let requests = if std::env::var_os(ALL).is_some() { 8 } else { 4 };
    let wanted = WantedPrecision::default();
    bed::check_engine(Family::Qwen3, wanted, requests, [first, second, third, fourth]);
}

/// Products that are cut by their size are found too: those of the real `--fast`.
#[test]
fn fast_products_are_found() {
    let [first, .., one, _] = gpus();
    let mut bed = Bed::new(Family::Llama, WantedPrecision::default(), first);
    let stream = Sequence { tokens: tokens(1, 40), ..Sequence::default() };
    bed.run(&mut stream.clone(), 1, 40);
    let mut fast = one;
    fast.set_fast_math();
    bed.ops = bed.ops.on(&fast);
    bed.run(&mut stream.clone(), 20, 40);
    assert!(bed.ops.notes().parting.is_none(), "of up to 32 rows each warp takes a chunk");
    bed.run(&mut stream.clone(), 40, 40);
    let parting = bed.ops.notes().parting.clone().unwrap();
    assert_eq!((parting.operation, parting.rows), ("matmul", 40), "{parting}");
    println!("{parting}");
}

#[test]
fn planted_faults_are_found_and_named() {
    let [first, second, ..] = gpus();
    bed::check_faults([first, second]);
}
