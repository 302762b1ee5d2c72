//! A kernel's arguments, in order.

use std::ffi::c_void;

use super::region::Region;

/// Each lies at the start of a slot of its own; the machines that have GPUs are little-endian.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    slots: Vec<u64>,
}

impl Arguments {
    pub fn region(self, region: &Region) -> Arguments {
        self.address(region.address())
    }

    /// Null where there is none.
    pub fn maybe(self, region: Option<&Region>) -> Arguments {
        self.address(region.map_or(0, Region::address))
    }

    pub fn address(mut self, address: u64) -> Arguments {
        self.slots.push(address);
        self
    }

    /// An `int` or `unsigned`.
    pub fn int(mut self, number: usize) -> Arguments {
        self.slots.push(number as u32 as u64);
        self
    }

    pub fn float(mut self, number: f32) -> Arguments {
        self.slots.push(u64::from(number.to_bits()));
        self
    }

    /// Word by word.
    #[cfg(feature = "cuda-emulated")]
    pub fn slots(&self) -> &[u64] {
        &self.slots
    }

    /// The same with each word as `change` makes it.
    #[cfg(feature = "cuda-emulated")]
    pub fn map(&self, change: impl Fn(u64) -> u64) -> Arguments {
        Arguments { slots: self.slots.iter().map(|slot| change(*slot)).collect() }
    }

    /// Where each argument lies, as the driver wants it; valid while `self` is.
    pub fn pointers(&mut self) -> Vec<*mut c_void> {
        let slots = self.slots.iter_mut();
        slots.map(|slot| std::ptr::from_mut(slot).cast()).collect()
    }
}
