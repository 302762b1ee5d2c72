//! A region's bytes on the host, aligned as the kernels that the emulator runs there may want them.

/// What is aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(1024))]
struct Line([u8; 1024]);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Host {
    lines: Vec<Line>,
    bytes: usize,
}

impl Host {
    /// Zeros.
    pub fn new(bytes: usize) -> Host {
        Host { lines: vec![Line([0; 1024]); bytes.div_ceil(size_of::<Line>())], bytes }
    }

    #[cfg(not(feature = "cuda"))]
    pub fn of(bytes: &[u8]) -> Host {
        let mut host = Host::new(bytes.len());
        host.bytes_mut().copy_from_slice(bytes);
        host
    }

    /// Where the bytes lie; kernels write there.
    pub fn address(&mut self) -> u64 {
        self.lines.as_mut_ptr() as u64
    }

    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the lines are bytes without a gap, so many at least.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.bytes) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; the borrow is exclusive.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.bytes) }
    }
}
