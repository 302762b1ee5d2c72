//! The GPU's memory, and copies to it, from it and within it.

use std::ops::Range;
use std::sync::atomic::Ordering;

use cudarc::driver::sys::{self, CUresult};

use super::super::region::Region;
use super::gpu::check;
use super::{Pinned, Stream};
use crate::OpsError;

impl Stream {
    pub fn allocate(&self, bytes: usize, what: &'static str) -> Result<Region, OpsError> {
        let mut address = 0;
        self.0.gpu.enter();
        // SAFETY: a place for an address.
        let made = unsafe { sys::cuMemAlloc_v2(&raw mut address, bytes.max(16)) };
        if made != CUresult::CUDA_SUCCESS {
            return Err(self.0.gpu.refused(what, made));
        }
        // SAFETY: so many bytes are there.
        self.note(unsafe { sys::cuMemsetD8Async(address, 0, bytes.max(16), self.0.stream) });
        self.0.after_copy.store(true, Ordering::Relaxed);
        Ok(Region::new(address, bytes, self.clone()))
    }

    pub fn free(&self, address: u64, _bytes: usize) {
        self.0.gpu.enter();
        // SAFETY: what `allocate` gave, once. The driver waits for work that uses it.
        unsafe { sys::cuMemFree_v2(address) };
    }

    pub fn pin(&self, bytes: usize) -> Result<Pinned, OpsError> {
        let mut pointer = std::ptr::null_mut();
        self.0.gpu.enter();
        // SAFETY: a place for a pointer. Flags 0: cached, for what comes back is read.
        let made = unsafe { sys::cuMemHostAlloc(&raw mut pointer, bytes.max(16), 0) };
        if made != CUresult::CUDA_SUCCESS {
            return Err(self.0.gpu.refused("pinned buffers", made));
        }
        let mut uploaded = std::ptr::null_mut();
        let no_timing = sys::CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: the driver gave so many bytes; then a place for a handle.
        unsafe {
            pointer.cast::<u8>().write_bytes(0, bytes);
            self.note(sys::cuEventCreate(&raw mut uploaded, no_timing));
        }
        Ok(Pinned { pointer: pointer.cast(), bytes, uploaded, stream: self.clone() })
    }

    /// Copies `bytes` to `offset` of `region`, and waits.
    pub fn write(&self, region: &Region, offset: usize, bytes: &[u8]) {
        assert!(offset + bytes.len() <= region.bytes(), "a copy beyond its region");
        self.0.gpu.enter();
        let to = region.address() + offset as u64;
        // SAFETY: both ends have so many bytes, and the source is read when the stream has come so far. On this
        // stream, for no other waits for what it does.
        let done = unsafe {
            let from = bytes.as_ptr().cast();
            check(sys::cuMemcpyHtoDAsync_v2(to, from, bytes.len(), self.0.stream))
                .and_then(|()| check(sys::cuStreamSynchronize(self.0.stream)))
        };
        self.keep(done);
        self.0.after_copy.store(true, Ordering::Relaxed);
    }

    /// Starts to copy the first `bytes` of `pinned` to `region`; [`Pinned::await_upload`] before they change.
    pub fn upload(&self, pinned: &Pinned, region: &Region, bytes: usize) {
        self.upload_part(pinned, 0..bytes, region, 0);
    }

    /// The same of a part, to `offset` of `region`.
    pub fn upload_part(&self, pinned: &Pinned, part: Range<usize>, region: &Region, offset: usize) {
        let fits = part.end <= pinned.bytes && offset + part.len() <= region.bytes();
        assert!(part.start <= part.end && fits, "a copy beyond its region");
        self.0.gpu.enter();
        // SAFETY: both ends have so many bytes, and outlive the copy: whoever drops them synchronises first.
        let started = unsafe {
            let from = pinned.pointer.add(part.start).cast_const().cast();
            let to = region.address() + offset as u64;
            check(sys::cuMemcpyHtoDAsync_v2(to, from, part.len(), self.0.stream))
                .and_then(|()| check(sys::cuEventRecord(pinned.uploaded, self.0.stream)))
        };
        self.keep(started);
        self.0.after_copy.store(true, Ordering::Relaxed);
    }

    /// Brings the first `bytes` of `from` back, once all before is done.
    pub fn download(&self, from: &Region, to: &mut Pinned, bytes: usize) -> Result<(), OpsError> {
        assert!(bytes <= to.bytes && bytes <= from.bytes(), "a copy beyond its region");
        self.0.gpu.enter();
        // SAFETY: both ends have so many bytes, and the call ends after the copy.
        let done = unsafe {
            let to = to.pointer.cast();
            check(sys::cuMemcpyDtoHAsync_v2(to, from.address(), bytes, self.0.stream))
                .and_then(|()| check(sys::cuStreamSynchronize(self.0.stream)))
        };
        self.keep(done);
        self.told()
    }

    pub fn copy(&self, from: &Region, to: &Region, bytes: usize) {
        assert!(bytes <= from.bytes() && bytes <= to.bytes(), "a copy beyond its region");
        self.0.gpu.enter();
        // SAFETY: both ends have so many bytes.
        let started = unsafe {
            sys::cuMemcpyDtoDAsync_v2(to.address(), from.address(), bytes, self.0.stream)
        };
        self.note(started);
        self.0.after_copy.store(true, Ordering::Relaxed);
    }

    pub fn synchronise(&self) -> Result<(), OpsError> {
        self.0.gpu.enter();
        // SAFETY: a live stream.
        self.note(unsafe { sys::cuStreamSynchronize(self.0.stream) });
        self.told()
    }
}
