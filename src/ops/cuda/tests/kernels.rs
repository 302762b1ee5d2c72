//! What kernels ask of a GPU before they run, and which of them is taken.

use super::super::driver::Stream;
use super::super::kernels::{Epilogue, Kernels, Matmul, Product};
use super::super::matrix::Format;
use super::super::wave::Room;
use crate::ops::Activation;

#[test]
fn kernels_load_where_shared_memory_is_scarce_and_warpgroups_are_none() {
    Kernels::load(&Stream::ada()).unwrap();
    // What the same GPU refuses: the warpgroups' own matmuls.
    let name = "matmul_warpgroup_bf16_f32_128";
    assert!(Stream::ada().function(name, 163_840).is_err());
}

/// Qwen3-4B's largest product is bound by the second cache in blocks of 128 rows; small ones fill the GPU with them.
#[test]
fn products_of_many_rows_take_the_faster_rounds() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let room = Room { multiprocessors: 132, warpgroups: true, clusters: true };
    let rows_of_a_block = |rows: usize, outputs: usize| {
        let epilogue = Epilogue::Gated(Activation::Silu);
        match kernels.matmul(Format::Bf16, epilogue, Product { rows, outputs }, room) {
            Matmul::Large(launch) => rows.div_ceil(launch.grid[0]),
            _ => 0,
        }
    };
    assert_eq!(rows_of_a_block(2048, 19_456), 256, "10 rounds, not 19 of 0.68");
    assert_eq!(rows_of_a_block(512, 4096), 128, "a round either way");
    assert_eq!(rows_of_a_block(64, 19_456), 0, "one wave");
}

/// The published sizes of Qwen3-4B and Llama-3.2-3B at batch 64: all CTAs are there at once, and few multiprocessors idle.
#[test]
fn products_of_a_few_dozen_rows_are_one_wave() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let room = Room { multiprocessors: 132, warpgroups: true, clusters: true };
    for rows in [33, 64, 65, 128] {
        for outputs in [2560, 3072, 5120, 6144, 16_384, 19_456] {
            let size = Product { rows, outputs };
            let matmul = kernels.matmul(Format::Bf16, Epilogue::Plain, size, room);
            let Matmul::Wave(launch) = matmul else {
                panic!("{size:?}: {matmul:?}");
            };
            let ctas: usize = launch.grid.iter().product();
            assert!((110..=132).contains(&ctas), "{size:?}: {launch:?}");
            assert!(launch.shared_bytes <= 232_448, "{launch:?}");
        }
    }
    let vocabulary = Product { rows: 64, outputs: 151_936 };
    let matmul = kernels.matmul(Format::Bf16, Epilogue::Plain, vocabulary, room);
    assert!(matches!(matmul, Matmul::Medium(_)), "many rounds: {matmul:?}");
}
