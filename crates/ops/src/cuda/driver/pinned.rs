//! Host memory that a GPU copies from and to.

use std::ffi::c_void;

use cudarc::driver::sys;

use super::Stream;

/// The host goes on meanwhile.
#[derive(Debug)]
pub struct Pinned {
    pub(super) pointer: *mut u8,
    pub(super) bytes: usize,
    /// After the last copy from here.
    pub(super) uploaded: sys::CUevent,
    pub(super) stream: Stream,
}

// SAFETY: the memory belongs to the value.
unsafe impl Send for Pinned {}
// SAFETY: shared references only read.
unsafe impl Sync for Pinned {}

impl Pinned {
    /// Waits until the last upload has read what is here.
    pub fn await_upload(&self) {
        self.stream.0.gpu.enter();
        // SAFETY: an event of this buffer, of which nothing may have been recorded yet.
        self.stream.note(unsafe { sys::cuEventSynchronize(self.uploaded) });
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the driver gave so many bytes, and they were written.
        unsafe { std::slice::from_raw_parts(self.pointer, self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.pointer, self.bytes) }
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        self.stream.0.gpu.enter();
        // SAFETY: copies from here are on this stream; then the memory is nobody's.
        unsafe {
            sys::cuStreamSynchronize(self.stream.0.stream);
            sys::cuEventDestroy_v2(self.uploaded);
            sys::cuMemFreeHost(self.pointer.cast::<c_void>());
        }
    }
}
