//! Equal bits whatever the batch, shown of the operations instead of numbers: every number is the hash of how it was made
//! (`crates/ops/src/cpu/lanes/symbolic.rs`), and a row's are those that it has alone, one row a step, in every shape of a step below.
//! What holds of the hashes holds of the bits, whatever the weights and the tokens.
//!
//! Covered: the CPU's operations of a decoder from the embedding to the logits, in the blocks of every instruction set, and the engine that
//! puts steps together. Assumed: what follows logits (it is given one row and its request), that the table of embeddings gives a
//! token its row, and what `symbolic.rs` says of finite numbers.

mod bed;
mod faults;
mod witness;

use std::time::Instant;

use wardround::model::{WantedPrecision, WantedType};
use wardround::ops::cpu::Isa;
use wardround::ops::{Cpu, Quantisation, StoredType};

use crate::alone::FAMILIES;
use bed::{ALL, Bed, MOST};

/// Whose blocks the schedules take turns in: all give the same bits, so the same hashes.
static LIKE: [&Isa; 4] = [&Isa::Portable, &Isa::Avx2, &Isa::AvxVnni, &Isa::Avx512Vnni];

/// Whose instructions round activations to meet bf16: their sums are of their own, opaque operations.
static ROUNDING: [&Isa; 2] = [&Isa::Avx512Bf16, &Isa::Amx];

/// How weights, keys and values are kept: as stored (bf16), as f32, in blocks.
fn precisions() -> [WantedPrecision; 5] {
    let auto = WantedPrecision::default();
    let wide = WantedType::Exactly(StoredType::F32);
    [
        auto,
        WantedPrecision { dtype: wide, kv: wide, ..auto },
        WantedPrecision { quantisation: Quantisation::Q8_0, ..auto },
        WantedPrecision { quantisation: Quantisation::Int8, ..auto },
        WantedPrecision { quantisation: Quantisation::Q4K, kv: wide, ..auto },
    ]
}

/// Machines of one, two and three threads, in the blocks of each of `like`.
fn cpus(like: &[&'static Isa]) -> Vec<Cpu> {
    let threads = [2, 1, 3, 2];
    let both = like.iter().zip(threads.into_iter().cycle());
    both.map(|(like, threads)| Cpu::symbolic(threads, like).unwrap()).collect()
}

#[test]
fn every_shape_of_a_step_computes_a_row_as_alone() {
    let started = Instant::now();
    let (mut steps, mut compared) = (0, 0);
    let plain = precisions().map(|wanted| (wanted, LIKE.as_slice()));
    let rounding = ROUNDING.iter().map(|like| (precisions()[0], std::slice::from_ref(like)));
    let cases: Vec<(WantedPrecision, &[&'static Isa])> =
        plain.into_iter().chain(rounding).collect();
    let all = std::env::var_os(ALL).is_some();
    for family in FAMILIES {
        for (index, &(wanted, like)) in cases.iter().enumerate() {
            let first = Cpu::symbolic(1, like[0]).unwrap();
            let mut bed = Bed::new(family, wanted, first);
            let (most, chunks): (usize, &[usize]) = match (all, index) {
                (true, 0) => (24, &[96, 191, 193, 255, 256, 257, 385, MOST]),
                (true, _) => (13, &[33, 97, 256]),
                (false, 0) => (9, &[97, 257]),
                (false, _) => (5, &[33, 97]),
            };
            bed.all_shapes(most, chunks, &cpus(like));
            let notes = bed.ops.notes();
            if let Some(parting) = &notes.parting {
                panic!("{}, {wanted:?}, {like:?}: {parting}", family.name());
            }
            steps += notes.steps.values().sum::<usize>();
            compared += notes.compared;
            println!("{}, {wanted:?}, {like:?}: {:?}", family.name(), started.elapsed());
        }
    }
    println!("{steps} steps, {compared} rows' operations compared, {:?}", started.elapsed());
}

#[test]
fn the_engine_computes_a_row_as_alone() {
    for (family, wanted) in FAMILIES.into_iter().zip(precisions()) {
        let mut machines = cpus(&LIKE);
        machines[0] = Cpu::symbolic(1, LIKE[0]).unwrap();
        bed::check_engine(family, wanted, 8, machines.try_into().unwrap());
    }
}

#[test]
fn planted_faults_are_found_and_named() {
    bed::check_faults([LIKE[0], LIKE[1]].map(|like| Cpu::symbolic(1, like).unwrap()));
}
