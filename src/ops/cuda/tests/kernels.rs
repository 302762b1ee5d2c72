//! What kernels ask of a GPU before they run.

use super::super::driver::Stream;
use super::super::kernels::Kernels;

#[test]
fn kernels_load_where_shared_memory_is_scarce_and_warpgroups_are_none() {
    Kernels::load(&Stream::ada()).unwrap();
    // What the same GPU refuses: the warpgroups' own matmuls.
    let name = "matmul_warpgroup_bf16_f32_128";
    assert!(Stream::ada().function(name, 163_840).is_err());
}
