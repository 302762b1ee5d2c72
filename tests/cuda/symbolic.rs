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

use super::{FAMILIES, KEPT};
use bed::{ALL, Bed, Sequence};
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

fn check_shapes(family: Family) {
    let started = Instant::now();
    let all = std::env::var_os(ALL).is_some();
    for quantisation in KEPT {
        let wanted = WantedPrecision { quantisation, ..WantedPrecision::default() };
        let gpus = gpus();
        let mut bed = Bed::new(family, wanted, gpus[0].clone());
        bed.all_shapes(9, &[70, 97], &gpus);
        let notes = bed.ops.notes();
        if let Some(parting) = &notes.parting {
            panic!("{}, {quantisation}: {parting}", family.name());
        }
        let steps: usize = notes.steps.values().sum();
        let (compared, elapsed) = (notes.compared, started.elapsed());
        println!(
            "{}, {quantisation}: {steps} steps, {compared} rows' operations compared, {elapsed:?}",
            family.name()
        );
        let _ = all;
    }
}

#[test]
fn every_shape_of_a_step_of_gemma_computes_a_row_as_alone() {
    check_shapes(FAMILIES[0]);
}

#[test]
fn every_shape_of_a_step_of_llama_computes_a_row_as_alone() {
    check_shapes(FAMILIES[1]);
}

#[test]
fn every_shape_of_a_step_of_qwen3_computes_a_row_as_alone() {
    check_shapes(FAMILIES[2]);
}

#[test]
fn planted_faults_are_found_and_named() {
    let [first, second, ..] = gpus();
    bed::check_faults([first, second]);
}
