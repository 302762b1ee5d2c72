//! The Metal backend: the operations of [`wardround_ops::Backend`], as candle has them. It has never been built or run on a Mac.
//!
//! All of it is portable but two calls, the opening of the device and `sdpa`: tests run it on candle's CPU device. What
//! candle sums in which order may follow from the number of rows, so a row's bits may depend on the rows beside it, and
//! that every batch gives the same bytes is not promised here. Products with bf16 weights take and give bf16; all else
//! is f32.

mod attention;
mod backend;
mod limits;
mod pages;
#[cfg(test)]
mod tests;

use candle_core::{Device, Error, Result, Tensor};

pub use pages::Pages;

use wardround_ops::{Cpu, OpsError};

/// The GPU of a Mac. Clones share it, and take turns.
#[derive(Clone, Debug)]
pub struct Metal {
    device: Device,
    /// What grammars are asked on, and its gate.
    host: Cpu,
}

impl Metal {
    /// The first GPU, with `threads` threads of the host.
    ///
    /// # Errors
    /// When there is none, or none that this build computes on, or the system refuses to start the threads.
    pub fn open(threads: usize) -> std::result::Result<Metal, OpsError> {
        let missing = |reason| OpsError::NoDevice { device: "metal".to_owned(), reason };
        if cfg!(not(feature = "metal")) {
            return Err(missing("this build has no Metal (feature `metal`, on macOS)".to_owned()));
        }
        let device = Device::new_metal(0).map_err(|error| missing(error.to_string()))?;
        Metal::on(device, threads)
    }

    pub fn on(device: Device, threads: usize) -> std::result::Result<Metal, OpsError> {
        let host = Cpu::new(threads).map_err(|error| OpsError::memory("threads", error))?;
        Ok(Metal { device, host })
    }

    /// A line for the GPU, if there is one.
    pub fn describe_all() -> Vec<String> {
        let metal = Metal::open(1).ok();
        let describe = |_| "metal: a GPU of Apple, through candle".to_owned();
        metal.map(describe).into_iter().collect()
    }

    /// Clones share the GPU.
    pub fn for_engine(&self) -> std::result::Result<Metal, OpsError> {
        Ok(self.clone())
    }

    /// What the bits of results depend on.
    pub fn kind(&self) -> String {
        "metal".to_owned()
    }

    /// Threads that grammars are asked on while the GPU works.
    pub fn threads(&self) -> usize {
        self.host.threads()
    }

    fn ids(&self, ids: &[u32]) -> Result<Tensor> {
        Tensor::new(ids, &self.device)
    }
}

/// Activations, f32 `[rows, width]`, or why there are none: whoever reads what was made of them is told.
#[derive(Debug)]
pub struct Buffer(pub std::result::Result<Tensor, String>);

impl Buffer {
    fn tensor(&self) -> Result<&Tensor> {
        let copy = |reason: &String| Error::Msg(reason.clone());
        self.0.as_ref().map_err(copy)
    }

    fn set(&mut self, computed: Result<Tensor>) {
        self.0 = computed.map_err(|error| error.to_string());
    }
}

/// A linear layer's weights, `[outputs, inputs]`, as stored.
#[derive(Debug)]
pub struct Matrix(Tensor);

/// A norm's weight, f32 `[width]`.
#[derive(Debug)]
pub struct Vector(Tensor);

/// f32 `[positions, head_dim / 2]` each.
#[derive(Debug)]
pub struct Rope {
    cosines: Tensor,
    sines: Tensor,
}
