//! In place of the GPU's driver, in builds that test its kernels without one: CUDA emulated on the CPU, on this thread.
//!
//! The same calls, done when they return; a region's address is one of the host's. One launch at a time: the
//! CTAs are fibers of the thread that launches. A graph keeps launches with the arguments they had, as the driver's do.

#[path = "emulated/emulator.rs"]
pub mod emulator;
#[path = "emulated/graph.rs"]
mod graph;

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ffi::{CStr, CString};
use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicUsize};
use std::sync::{Arc, Mutex, PoisonError};

use super::arguments::{Arguments, RowsMap};
use super::launch::Launch;
use super::region::Region;
use crate::OpsError;
pub use graph::Graph;
use graph::Recorded;

/// The GPU that is emulated. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct Stream {
    multiprocessors: usize,
    /// What a CTA may have of dynamic shared memory.
    shared_bytes: usize,
    has_warpgroups: bool,
    has_clusters: bool,
    state: Arc<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Launches that are kept for a graph, while they are.
    recorded: Mutex<Option<Vec<Recorded>>>,
    /// Whether launches that are recorded are refused, as a driver may.
    refuses: AtomicBool,
    replays: AtomicUsize,
}

impl Stream {
    /// As an H200 has.
    fn hopper() -> Stream {
        Stream {
            multiprocessors: 132,
            shared_bytes: 232_448,
            has_warpgroups: true,
            has_clusters: true,
            state: Arc::default(),
        }
    }
}

/// Names live as long as the process; there are not many.
#[derive(Clone, Copy, Debug)]
pub struct Function(&'static CStr);

#[derive(Debug)]
pub struct Pinned(Vec<u8>);

impl Stream {
    pub fn open(ordinal: usize) -> Result<Stream, OpsError> {
        match ordinal {
            0 => Ok(Stream::hopper()),
            _ => Err(OpsError::NoDevice {
                device: format!("cuda:{ordinal}"),
                reason: "there is one emulated GPU".to_owned(),
            }),
        }
    }

    /// As GPUs of compute capability 8.9 are, which have the least shared memory of those that kernels are built for.
    #[cfg(test)]
    pub fn ada() -> Stream {
        Stream {
            shared_bytes: 101_376,
            has_warpgroups: false,
            has_clusters: false,
            ..Stream::hopper()
        }
    }

    pub fn count() -> usize {
        1
    }

    pub fn sibling(&self) -> Result<Stream, OpsError> {
        Ok(Stream { state: Arc::default(), ..self.clone() })
    }

    /// What the bits of results depend on.
    pub fn kind(&self) -> String {
        "cuda emulated".to_owned()
    }

    pub fn describe(&self) -> String {
        "cuda:0: emulated on the CPU, for tests".to_owned()
    }

    /// As an H200 has, so that the same kernels are chosen.
    pub fn multiprocessors(&self) -> usize {
        self.multiprocessors
    }

    pub fn has_warpgroups(&self) -> bool {
        self.has_warpgroups
    }

    /// Threads of a CTA that draws; the result does not depend on them, and fewer are faster here.
    pub fn drawing_threads(&self) -> usize {
        64
    }

    /// CTAs of a cluster at most.
    pub fn most_clustered(&self) -> usize {
        if self.has_clusters { 8 } else { 1 }
    }

    /// Nothing: the emulator's copies go by addresses and sizes.
    pub fn rows_map(
        &self,
        region: &Region,
        [rows, stride]: [usize; 2],
        _box_rows: usize,
    ) -> RowsMap {
        assert!(2 * rows * stride <= region.bytes(), "a map beyond its region");
        RowsMap::default()
    }

    /// How many clusters of that launch run at once: as if each CTA filled a multiprocessor.
    pub fn clusters_at_once(&self, launch: Launch) -> usize {
        let fits = launch.cluster <= self.most_clustered();
        if fits { self.multiprocessors() / 16 * 16 / launch.cluster } else { 0 }
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

    pub fn upload_part(&self, pinned: &Pinned, part: Range<usize>, region: &Region, offset: usize) {
        self.write(region, offset, &pinned.0[part]);
    }

    pub fn download(&self, from: &Region, to: &mut Pinned, bytes: usize) -> Result<(), OpsError> {
        assert!(bytes <= from.bytes(), "a copy beyond its region");
        let from = from.address() as *const u8;
        // SAFETY: the region has so many bytes.
        let source = unsafe { std::slice::from_raw_parts(from, bytes) };
        to.0[..bytes].copy_from_slice(source);
        Ok(())
    }

    pub fn copy(&self, from: &Region, to: &Region, bytes: usize) {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "a copy beyond its region");
        let (from, to) = (from.address() as *const u8, to.address() as *mut u8);
        // SAFETY: both have so many bytes, and regions do not overlap.
        unsafe { to.copy_from_nonoverlapping(from, bytes) };
    }

    pub fn synchronise(&self) -> Result<(), OpsError> {
        Ok(())
    }

    pub fn launch(&self, launch: Launch, arguments: Arguments) {
        if launch.grid.contains(&0) {
            return;
        }
        let mut recorded = self.state.recorded.lock().unwrap_or_else(PoisonError::into_inner);
        match recorded.as_mut() {
            Some(recorded) => recorded.push((launch, arguments)),
            None => self.run(launch, arguments),
        }
    }

    fn run(&self, launch: Launch, mut arguments: Arguments) {
        emulator::run(launch.function.0, &launch, &mut arguments);
    }

    /// From here on the threads of each CTA that this thread launches take turns at random; in order again with 0.
    #[cfg(test)]
    pub fn shuffle(&self, seed: u64) {
        emulator::shuffle(seed);
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

    pub fn await_upload(&self) {}
}
