//! The GPU as what launches are compared on; see [`Shadow`]. Everything is on the stream, and done when a call returns.

use std::io::Write;
use std::sync::Arc;
use std::time::{Duration, Instant};

use cudarc::driver::sys::{self, CUresult};

use super::super::arguments::Arguments;
use super::super::launch::Launch;
use super::super::shadow::{Fault, LATE_NANOSECONDS, Late, POISON, PRODUCER, Shadow, Subject};
use super::Stream;
use super::gpu::{Gpu, check};

/// What a launch may take before it counts as one that never ends.
const PATIENCE: Duration = Duration::from_secs(20);
/// Of the kernel that writes late. It leaves most multiprocessors to the one that is tried.
const PRODUCER_GRID: [usize; 3] = [32, 1, 1];
const PRODUCER_THREADS: usize = 256;
/// Regions come to the host and go back at every launch: they are as few as where all is emulated.
const FREE_BYTES: usize = 1 << 32;
/// Words of a piece, as kernels/shadow.cu declares it.
const PIECE_WORDS: usize = 3;
/// Where a copy may start.
const ALIGNMENT: usize = 256;

impl Stream {
    /// Of a stream that nobody else has yet.
    pub(super) fn shadowed(mut self, shadow: Option<Arc<Shadow>>) -> Stream {
        if let (Some(inner), Some(shadow)) = (Arc::get_mut(&mut self.0), shadow) {
            // Launches that a graph keeps cannot be compared.
            inner.without.graphs = true;
            inner.shadow = Some(shadow);
        }
        self
    }

    pub(super) fn shadows_room(&self, free: usize) -> usize {
        if self.0.shadow.is_some() { free.min(FREE_BYTES) } else { free }
    }

    pub(super) fn tell_shadow(&self, tell: impl FnOnce(&Shadow)) {
        if let Some(shadow) = &self.0.shadow {
            tell(shadow);
        }
    }

    pub(super) fn launch_shadowed(&self, launch: &Launch, arguments: &Arguments) {
        let Some(shadow) = &self.0.shadow else {
            return;
        };
        let name = shadow.names.of(launch.function.handle());
        if let Err(reason) = shadow.launch(&OnGpu(self.clone()), &name, launch, arguments) {
            end(&reason);
        }
    }
}

/// After a fault the GPU does nothing more for this process, and a kernel that never ends would hold up its orderly end.
fn end(reason: &str) -> ! {
    let _ = writeln!(std::io::stderr(), "WARDROUND_CUDA_SHADOW: {reason}");
    #[cfg(target_os = "linux")]
    // SAFETY: it ends the process, and runs nothing of it.
    unsafe {
        libc::_exit(70)
    }
    #[cfg(not(target_os = "linux"))]
    std::process::abort()
}

#[derive(Debug)]
struct OnGpu(Stream);

impl OnGpu {
    fn gpu(&self) -> &Gpu {
        &self.0.0.gpu
    }

    fn start(&self, launch: Launch, arguments: Arguments) -> Result<(), Fault> {
        check(self.0.start(launch, arguments)).map_err(|reason| Fault {
            reason: format!("the launch is refused: {reason}"),
            is_final: false,
        })
    }

    /// Waits for the launches on the stream, but not for ever.
    fn wait(&self) -> Result<(), Fault> {
        let started = Instant::now();
        loop {
            // SAFETY: a live stream.
            match unsafe { sys::cuStreamQuery(self.0.0.stream) } {
                CUresult::CUDA_SUCCESS => return Ok(()),
                CUresult::CUDA_ERROR_NOT_READY if started.elapsed() < PATIENCE => {
                    std::thread::sleep(Duration::from_micros(20));
                }
                CUresult::CUDA_ERROR_NOT_READY => {
                    let seconds = PATIENCE.as_secs();
                    return Err(last(format!("it still runs after {seconds} seconds")));
                }
                other => return check(other).map_err(last),
            }
        }
    }

    /// What is sent, then done on the stream up to there.
    fn send(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        self.gpu().enter();
        // SAFETY: both ends have so many bytes, and the source is read when the call returns.
        let sent = unsafe {
            let stream = self.0.0.stream;
            check(sys::cuMemcpyHtoDAsync_v2(address, from.as_ptr().cast(), from.len(), stream))
                .and_then(|()| check(sys::cuStreamSynchronize(stream)))
        };
        sent.map_err(last)
    }

    fn poison(&self, late: &Late<'_>) -> Result<(), Fault> {
        let (bytes, stream) = (late.bytes.len(), self.0.0.stream);
        // SAFETY: a live region of so many bytes.
        check(unsafe { sys::cuMemsetD8Async(late.address, POISON, bytes, stream) }).map_err(last)
    }
}

impl Subject for OnGpu {
    fn read(&self, address: u64, to: &mut [u8]) -> Result<(), Fault> {
        self.gpu().enter();
        // SAFETY: both ends have so many bytes, and the call ends after the copy.
        let read = unsafe {
            let stream = self.0.0.stream;
            check(sys::cuMemcpyDtoHAsync_v2(to.as_mut_ptr().cast(), address, to.len(), stream))
                .and_then(|()| check(sys::cuStreamSynchronize(stream)))
        };
        read.map_err(last)
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        self.send(address, from)
    }

    fn has_late(&self) -> bool {
        self.gpu().capability.0 >= 9 && !self.0.0.without.early_launches
    }

    fn plain(&self, launch: &Launch, arguments: &Arguments) -> Result<(), Fault> {
        self.start(Launch { early: false, ..*launch }, arguments.clone())?;
        self.wait()
    }

    fn late(
        &self,
        launch: &Launch,
        arguments: &Arguments,
        inputs: &[Late<'_>],
    ) -> Result<(), Fault> {
        let named = self.0.function(&PRODUCER.to_string_lossy(), 0);
        let producer = named.map_err(|error| last(error.to_string()))?;
        let pieces = (8 * PIECE_WORDS * inputs.len()).next_multiple_of(ALIGNMENT);
        let room = inputs.iter().map(|late| late.bytes.len().next_multiple_of(ALIGNMENT));
        let staging = Staging::new(self.gpu(), pieces + room.sum::<usize>())?;
        let mut bytes = vec![0; staging.bytes];
        let mut at = pieces;
        for (late, piece) in inputs.iter().zip(0..) {
            let words = [late.address, staging.address + at as u64, late.bytes.len() as u64];
            let words: Vec<u8> = words.into_iter().flat_map(u64::to_le_bytes).collect();
            bytes[piece * 8 * PIECE_WORDS..][..words.len()].copy_from_slice(&words);
            bytes[at..][..late.bytes.len()].copy_from_slice(late.bytes);
            at += late.bytes.len().next_multiple_of(ALIGNMENT);
        }
        for late in inputs {
            self.poison(late)?;
        }
        self.send(staging.address, &bytes)?;
        let list =
            Arguments::default().address(staging.address).int(inputs.len()).int(LATE_NANOSECONDS);
        let producer = Launch::new(producer, PRODUCER_GRID, PRODUCER_THREADS);
        let started = self
            .start(Launch { early: false, ..producer }, list)
            .and_then(|()| self.start(Launch { early: true, ..*launch }, arguments.clone()));
        let done = self.wait().and(started);
        if done.as_ref().is_err_and(|fault| fault.is_final) {
            // To free it would wait for a kernel that may never end.
            std::mem::forget(staging);
        }
        done
    }
}

fn last(reason: String) -> Fault {
    Fault { reason, is_final: true }
}

/// Memory of the GPU for one launch.
#[derive(Debug)]
struct Staging {
    address: u64,
    bytes: usize,
}

impl Staging {
    fn new(gpu: &Gpu, bytes: usize) -> Result<Staging, Fault> {
        let mut address = 0;
        gpu.enter();
        // SAFETY: a place for an address.
        check(unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes) }).map_err(last)?;
        Ok(Staging { address, bytes })
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: what the driver gave, once; the context is still this thread's.
        unsafe { sys::cuMemFree_v2(self.address) };
    }
}
