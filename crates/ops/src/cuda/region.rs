//! A piece of the GPU's memory that is given back when its owner goes.

use super::driver::Stream;

/// Zeroed when it is made.
#[derive(Debug)]
pub struct Region {
    address: u64,
    bytes: usize,
    stream: Stream,
}

impl Region {
    /// `address` is what `stream` allocated.
    pub fn new(address: u64, bytes: usize, stream: Stream) -> Region {
        Region { address, bytes, stream }
    }

    pub fn address(&self) -> u64 {
        self.address
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        self.stream.free(self.address, self.bytes);
    }
}
