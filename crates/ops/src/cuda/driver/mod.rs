//! The GPU's driver: memory, copies, launches and graphs on one stream.
//!
//! Launches do not fail one by one. The first error is kept, and told at the next [`Stream::download`]; see
//! [`Failures`].

mod gpu;
mod graph;
mod kernel;
mod memory;
mod pinned;
mod rows_map;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use cudarc::driver::sys::{self, CUresult};

use gpu::{Gpu, check};
pub use graph::Graph;
pub use kernel::Function;
pub use pinned::Pinned;

use super::failures::Failures;
use crate::OpsError;

/// A stream of one GPU. Clones are the same stream.
#[derive(Clone, Debug)]
pub struct Stream(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    gpu: Arc<Gpu>,
    stream: sys::CUstream,
    /// `WARDROUND_CUDA_CHECK`: each launch is named, and waited for, so that an error is its own; there are no graphs.
    checks: bool,
    failures: Failures,
    /// Whether the last thing on the stream is a copy and no launch.
    after_copy: AtomicBool,
}

// SAFETY: the driver's handles may be used by any thread; each call here makes the context current first.
unsafe impl Send for Inner {}
// SAFETY: as above.
unsafe impl Sync for Inner {}

impl Stream {
    pub fn open(ordinal: usize) -> Result<Stream, OpsError> {
        let missing =
            |reason: String| OpsError::NoDevice { device: format!("cuda:{ordinal}"), reason };
        if !is_driver_there() {
            return Err(missing("no NVIDIA driver (libcuda) is installed".to_owned()));
        }
        Stream::on(Arc::new(Gpu::open(ordinal).map_err(missing)?))
    }

    pub fn count() -> usize {
        let mut count = 0;
        if !is_driver_there() {
            return 0;
        }
        // SAFETY: the library is there, and `count` a place for a number.
        let counted = unsafe {
            check(sys::cuInit(0)).and_then(|()| check(sys::cuDeviceGetCount(&raw mut count)))
        };
        counted.map_or(0, |()| count as usize)
    }

    pub fn sibling(&self) -> Result<Stream, OpsError> {
        Stream::on(self.0.gpu.clone())
    }

    fn on(gpu: Arc<Gpu>) -> Result<Stream, OpsError> {
        let mut stream = std::ptr::null_mut();
        gpu.enter();
        let non_blocking = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: a place for a handle.
        let made = unsafe { check(sys::cuStreamCreate(&raw mut stream, non_blocking)) };
        made.map_err(|reason| gpu.failed(reason))?;
        Ok(Stream(Arc::new(Inner {
            gpu,
            stream,
            checks: std::env::var("WARDROUND_CUDA_CHECK")
                .is_ok_and(|value| crate::variable::boolean(&value) == Some(true)),
            failures: Failures::default(),
            after_copy: AtomicBool::new(true),
        })))
    }

    /// `cuda sm_90`: what decides the bits.
    pub fn kind(&self) -> String {
        let (major, minor) = self.0.gpu.capability;
        format!("cuda sm_{major}{minor}")
    }

    /// For people: number, name, capability, free memory.
    pub fn describe(&self) -> String {
        let gpu = &self.0.gpu;
        let gibibytes = self.free_bytes() as f64 / f64::from(1 << 30);
        let (ordinal, name, kind) = (gpu.ordinal, &gpu.name, self.kind());
        format!("cuda:{ordinal}: {name}, {kind}, {gibibytes:.1} GiB free")
    }

    pub fn multiprocessors(&self) -> usize {
        self.0.gpu.multiprocessors
    }

    /// Whether this build's machine code for this GPU has products by warpgroups.
    pub fn has_warpgroups(&self) -> bool {
        self.0.gpu.capability == (9, 0)
    }

    /// Threads of a CTA that draws; the result does not depend on them.
    pub fn drawing_threads(&self) -> usize {
        1024
    }

    /// CTAs of a cluster at most: as many as every GPU that has clusters can start together.
    pub fn most_clustered(&self) -> usize {
        if self.0.gpu.capability.0 >= 9 { 8 } else { 1 }
    }

    pub fn free_bytes(&self) -> usize {
        let (mut free, mut total) = (0, 0);
        self.0.gpu.enter();
        // SAFETY: both are places for numbers.
        let asked = unsafe { sys::cuMemGetInfo_v2(&raw mut free, &raw mut total) };
        if check(asked).is_ok() { free } else { 0 }
    }

    fn note(&self, result: CUresult) {
        self.keep(check(result));
    }

    fn keep(&self, result: Result<(), String>) {
        self.0.failures.keep(result);
    }

    fn told(&self) -> Result<(), OpsError> {
        match self.0.failures.told() {
            Some(reason) => Err(self.0.gpu.failed(reason.to_owned())),
            None => Ok(()),
        }
    }
}

#[cfg(not(feature = "linked-driver"))]
fn is_driver_there() -> bool {
    // SAFETY: only looks for the library.
    unsafe { sys::is_culib_present() }
}

/// Without it the program does not start.
#[cfg(feature = "linked-driver")]
fn is_driver_there() -> bool {
    true
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.gpu.enter();
        // SAFETY: nobody else has the handle any more.
        unsafe {
            sys::cuStreamSynchronize(self.stream);
            sys::cuStreamDestroy_v2(self.stream);
        }
    }
}
