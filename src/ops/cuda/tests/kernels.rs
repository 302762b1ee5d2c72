//! What kernels ask of a GPU before they run, and which of them is taken.

use super::super::driver::Stream;
use super::super::kernels::{Epilogue, Kernels, Matmul, Product, Room};
use super::super::matrix::Format;
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
    let room = Room { multiprocessors: 132, warpgroups: true };
    let rows_of_a_block = |rows: usize, outputs: usize| {
        let epilogue = Epilogue::Gated(Activation::Silu);
        match kernels.matmul(Format::Bf16, epilogue, Product { rows, outputs }, room) {
            Matmul::Large(launch) => rows.div_ceil(launch.grid[0]),
            _ => 0,
        }
    };
    assert_eq!(rows_of_a_block(2048, 19_456), 256, "10 rounds, not 19 of 0.68");
    assert_eq!(rows_of_a_block(512, 4096), 128, "a round either way");
    assert_eq!(rows_of_a_block(64, 19_456), 0, "a medium one");
}
