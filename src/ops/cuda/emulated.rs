//! In place of the GPU's driver, in builds that test its kernels without one: CUDA emulated on the CPU, on this thread.
//!
//! The same calls, done when they return; a region's address is one of the host's. One launch at a time: the
//! CTAs are fibers of the thread that launches.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, CString, c_char, c_void};

use super::arguments::Arguments;
use super::launch::Launch;
use super::region::Region;
use super::without::Without;
use crate::ops::OpsError;

unsafe extern "C" {
    /// 0: done; 1: there is no such kernel.
    fn wardround_emulated_launch(
        name: *const c_char,
        grid: *const u32,
        block: *const u32,
        shared_bytes: u32,
        arguments: *mut *mut c_void,
    ) -> i32;

    #[cfg(test)]
    fn wardround_emulated_shuffle(seed: u64);
}

/// The GPU that is emulated.
#[derive(Clone, Debug)]
pub struct Stream {
    /// What a CTA may have of dynamic shared memory.
    shared_bytes: usize,
    has_warpgroups: bool,
}

/// As an H200 has.
const HOPPER: Stream = Stream { shared_bytes: 232_448, has_warpgroups: true };

/// Names live as long as the process; there are not many.
#[derive(Clone, Copy, Debug)]
pub struct Function(&'static CStr);

/// There is nothing to keep: emulated steps all run launch by launch.
#[derive(Debug)]
pub enum Graph {}

#[derive(Debug)]
pub struct Pinned(Vec<u8>);

impl Stream {
    /// # Errors
    /// For any but the first.
    pub fn open(ordinal: usize, _without: Without) -> Result<Stream, OpsError> {
        match ordinal {
            0 => Ok(HOPPER),
            _ => Err(OpsError::NoDevice {
                device: format!("cuda:{ordinal}"),
                reason: "there is one emulated GPU".to_owned(),
            }),
        }
    }

    /// As GPUs of compute capability 8.9 are, which have the least shared memory of those that kernels are built for.
    #[cfg(test)]
    pub fn ada() -> Stream {
        Stream { shared_bytes: 101_376, has_warpgroups: false }
    }

    pub fn count() -> usize {
        1
    }

    /// # Errors
    /// None.
    pub fn sibling(&self) -> Result<Stream, OpsError> {
        Ok(self.clone())
    }

    pub fn kind(&self) -> String {
        "cuda emulated".to_owned()
    }

    pub fn describe(&self) -> String {
        "cuda:0: emulated on the CPU, for tests".to_owned()
    }

    /// As an H200 has, so that the same kernels are chosen.
    pub fn multiprocessors(&self) -> usize {
        132
    }

    pub fn has_warpgroups(&self) -> bool {
        self.has_warpgroups
    }

    /// Threads of a CTA that draws; the result does not depend on them, and fewer are faster here.
    pub fn drawing_threads(&self) -> usize {
        128
    }

    pub fn free_bytes(&self) -> usize {
        1 << 32
    }

    /// # Errors
    /// More shared memory than there is, as the driver refuses it; a name with a zero byte.
    pub fn function(&self, name: &str, shared_bytes: usize) -> Result<Function, OpsError> {
        if shared_bytes > self.shared_bytes {
            return Err(OpsError::Device {
                device: self.kind(),
                reason: format!("kernel `{name}`: {shared_bytes} bytes of shared memory"),
            });
        }
        let name = CString::new(name).map_err(|error| OpsError::memory("a name", error))?;
        Ok(Function(Box::leak(name.into_boxed_c_str())))
    }

    /// # Errors
    /// When the system has no room.
    pub fn allocate(&self, bytes: usize, what: &'static str) -> Result<Region, OpsError> {
        // SAFETY: the size is not zero.
        let pointer = unsafe { alloc_zeroed(layout(bytes)) };
        if pointer.is_null() {
            return Err(OpsError::memory(what, "the system has none"));
        }
        Ok(Region::new(pointer as u64, bytes, self.clone()))
    }

    pub fn free(&self, address: u64, bytes: usize) {
        // SAFETY: what `allocate` gave, with its layout, once.
        unsafe { dealloc(address as *mut u8, layout(bytes)) };
    }

    /// # Errors
    /// None.
    pub fn pin(&self, bytes: usize) -> Result<Pinned, OpsError> {
        Ok(Pinned(vec![0; bytes.max(16)]))
    }

    pub fn write(&self, region: &Region, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= region.bytes(), "a copy beyond its region");
        let to = (region.address() as usize + offset) as *mut u8;
        // SAFETY: the region has so many bytes from there.
        unsafe { to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    pub fn upload(&self, pinned: &Pinned, region: &Region, bytes: usize) {
        self.write(region, 0, &pinned.0[..bytes]);
    }

    pub fn await_upload(&self) {}

    /// # Errors
    /// None.
    pub fn download(
        &self,
        region: &Region,
        pinned: &mut Pinned,
        bytes: usize,
    ) -> Result<(), OpsError> {
        assert!(bytes <= region.bytes(), "a copy beyond its region");
        let from = region.address() as *const u8;
        // SAFETY: the region has so many bytes.
        let source = unsafe { std::slice::from_raw_parts(from, bytes) };
        pinned.0[..bytes].copy_from_slice(source);
        Ok(())
    }

    pub fn copy(&self, from: &Region, to: &Region, bytes: usize) {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "a copy beyond its region");
        let (from, to) = (from.address() as *const u8, to.address() as *mut u8);
        // SAFETY: both have so many bytes, and regions do not overlap.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }

    /// # Errors
    /// None.
    pub fn synchronise(&self) -> Result<(), OpsError> {
        Ok(())
    }

    pub fn launch(&self, launch: Launch, mut arguments: Arguments) {
        let grid = launch.grid.map(|size| size as u32);
        let block = [launch.threads as u32, 1, 1];
        let mut pointers = arguments.pointers();
        let name = launch.function.0;
        // SAFETY: whoever launches gives the kernel the arguments that its declaration in kernels/ names.
        let done = unsafe {
            wardround_emulated_launch(
                name.as_ptr(),
                grid.as_ptr(),
                block.as_ptr(),
                launch.shared_bytes as u32,
                pointers.as_mut_ptr(),
            )
        };
        assert_eq!(done, 0, "the emulator has no kernel {name:?}");
    }

    /// From here on the threads of each CTA that this thread launches take turns at random; in order again with 0.
    #[cfg(test)]
    pub fn shuffle(&self, seed: u64) {
        // SAFETY: it sets a number of this thread's.
        unsafe { wardround_emulated_shuffle(seed) };
    }

    pub fn capture(&self, mut body: impl FnMut()) -> Option<Graph> {
        body();
        None
    }

    pub fn replay(&self, graph: &Graph) {
        match *graph {}
    }
}

/// As aligned as what the driver gives.
fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes.max(16), 256).unwrap_or_else(|_| Layout::new::<[u64; 32]>())
}

impl Pinned {
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.0
    }
}
