//! The emulator's entry (kernels/emulator.cpp).

use std::ffi::{CStr, c_char, c_void};

use super::{Arguments, Launch};

unsafe extern "C" {
    /// 0: done; 1: there is no such kernel.
    fn wardround_emulated_launch(
        name: *const c_char,
        grid: *const u32,
        threads: u32,
        cluster: u32,
        shared_bytes: u32,
        arguments: *mut *mut c_void,
    ) -> i32;

    #[cfg(test)]
    fn wardround_emulated_shuffle(seed: u64);

    #[cfg(test)]
    fn wardround_emulated_products(operands: *mut Operands);
}

/// What a lane brings to a product of tiles, as kernels/emulator.h declares it.
#[cfg(test)]
#[repr(C)]
struct Operands {
    a: [u32; 4],
    b: [u32; 2],
    c: [f32; 4],
}

/// From here on the threads of each CTA that this thread launches take turns at random; in order again with 0.
#[cfg(test)]
pub fn shuffle(seed: u64) {
    // SAFETY: it sets a number of this thread's.
    unsafe { wardround_emulated_shuffle(seed) };
}

/// Runs a kernel on this thread.
///
/// # Panics
/// When the build has no such kernel.
pub fn run(name: &CStr, launch: &Launch, arguments: &mut Arguments) {
    let grid = launch.grid.map(|size| size as u32);
    let mut pointers = arguments.pointers();
    // SAFETY: whoever launches gives the kernel the arguments that its declaration in kernels/ names.
    let done = unsafe {
        wardround_emulated_launch(
            name.as_ptr(),
            grid.as_ptr(),
            launch.threads as u32,
            launch.cluster as u32,
            launch.shared_bytes as u32,
            pointers.as_mut_ptr(),
        )
    };
    assert_eq!(done, 0, "the emulator has no kernel {name:?}");
}

/// What becomes of the sums that a warp's lanes bring, by the rule of Hopper's tensor cores.
#[cfg(test)]
pub fn products(lanes: &[([u32; 4], [u32; 2], [f32; 4])]) -> Vec<[f32; 4]> {
    assert_eq!(lanes.len(), 32);
    let mut operands: Vec<Operands> = lanes.iter().map(|&(a, b, c)| Operands { a, b, c }).collect();
    // SAFETY: so many lanes' operands.
    unsafe { wardround_emulated_products(operands.as_mut_ptr()) };
    operands.into_iter().map(|lane| lane.c).collect()
}
