//! A kernel's arguments, in order.

use std::ffi::c_void;

use super::Buffer;
use super::region::Region;

/// A matrix of activations, as the copy engine of Hopper is told of it: kernels/mbarrier.cuh.
pub type RowsMap = [u64; 16];

/// Each lies at the start of a slot of its own; the machines that have GPUs are little-endian.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    slots: Vec<u64>,
    /// The first slot of each argument.
    starts: Vec<usize>,
}

impl Arguments {
    pub fn region(self, region: &Region) -> Arguments {
        self.address(region.address())
    }

    /// Where rows lie, and the numbers from one to the next.
    pub fn rows(self, buffer: &Buffer) -> Arguments {
        self.region(&buffer.region).int(buffer.stride)
    }

    pub fn maybe(self, region: Option<&Region>) -> Arguments {
        self.address(region.map_or(0, Region::address))
    }

    pub fn address(self, address: u64) -> Arguments {
        self.words(&[address])
    }

    /// What [`Stream::rows_map`] gave.
    ///
    /// [`Stream::rows_map`]: super::driver::Stream::rows_map
    pub fn rows_map(self, map: RowsMap) -> Arguments {
        self.words(&map)
    }

    fn words(mut self, words: &[u64]) -> Arguments {
        self.starts.push(self.slots.len());
        self.slots.extend(words);
        self
    }

    pub fn int(self, number: usize) -> Arguments {
        self.words(&[number as u32 as u64])
    }

    pub fn float(self, number: f32) -> Arguments {
        self.words(&[u64::from(number.to_bits())])
    }

    /// Where each argument lies, as the driver wants it; valid while `self` is.
    pub fn pointers(&mut self) -> Vec<*mut c_void> {
        let slots = self.slots.as_mut_ptr();
        self.starts.iter().map(|start| slots.wrapping_add(*start).cast()).collect()
    }
}
