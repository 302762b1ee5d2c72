//! candle as a backend: the operations of [`wardround_ops::Backend`] on candle's devices: its CPU, GPUs of NVIDIA and of Apple. No GPU has
//! run it yet; tests run it on the CPU, and all of it is the same everywhere but the opening of the device.
//!
//! What candle sums in which order may follow from the number of rows, so a row's bits may depend on the rows beside it, and
//! that every batch gives the same bytes is not promised here. Products with bf16 weights take and give bf16; all else
//! is f32.

mod attention;
mod backend;
mod delta_rule;
mod functions;
mod pages;
#[cfg(test)]
mod tests;

use std::fmt;

use candle_core::{Device, Error, Result, Tensor};

pub use pages::Pages;

use wardround_ops::{CANDLE, Cpu, OpsError};

/// Where candle computes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Cpu,
    Cuda(usize),
    Metal,
}

/// As `--device` names it.
impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cpu => formatter.write_str("candle"),
            Place::Cuda(ordinal) => write!(formatter, "candle-cuda:{ordinal}"),
            Place::Metal => formatter.write_str("metal"),
        }
    }
}

/// One of candle's devices. Clones share it, and take turns.
#[derive(Clone, Debug)]
pub struct Candle {
    device: Device,
    /// What grammars are asked on, and its gate.
    host: Cpu,
}

impl Candle {
    /// The device there, with `threads` threads of the host.
    ///
    /// # Errors
    /// When there is none, or none that this build computes on, or the system refuses to start the threads.
    pub fn open(place: Place, threads: usize) -> std::result::Result<Candle, OpsError> {
        let without = |name| Err(Error::Msg(format!("this build is without the feature `{name}`")));
        let device = match place {
            Place::Cpu => Ok(Device::Cpu),
            Place::Cuda(_) if cfg!(not(feature = "candle-cuda")) => without("candle-cuda"),
            Place::Cuda(ordinal) => Device::new_cuda(ordinal),
            Place::Metal if cfg!(not(feature = "metal")) => without("metal"),
            Place::Metal => Device::new_metal(0),
        };
        let missing =
            |error: Error| OpsError::NoDevice { device: place.to_string(), reason: told(&error) };
        let device = device.map_err(missing)?;
        let host = Cpu::new(threads).map_err(|error| OpsError::memory("threads", error))?;
        Ok(Candle { device, host })
    }

    /// A line for the first GPU of each maker, if there is one.
    pub fn describe_all() -> Vec<String> {
        let places = [Place::Cuda(0), Place::Metal].into_iter();
        let there = places.filter(|place| Candle::open(*place, 1).is_ok());
        there.map(|place| format!("{place}: a GPU through candle")).collect()
    }

    /// What computed a run. Equal kinds do not promise equal bytes here.
    pub fn kind(&self) -> String {
        let place = match self.device {
            Device::Cpu => "cpu",
            Device::Cuda(_) => "cuda",
            Device::Metal(_) => "metal",
        };
        format!("{CANDLE}{place}")
    }

    /// Free bytes of a GPU that has memory of its own.
    pub fn own_memory(&self) -> Option<usize> {
        #[cfg(feature = "candle-cuda")]
        if let Device::Cuda(gpu) = &self.device {
            return gpu.cuda_stream().context().mem_get_info().ok().map(|(free, _)| free);
        }
        None
    }

    /// Threads that grammars are asked on while the GPU works.
    pub fn threads(&self) -> usize {
        self.host.threads()
    }

    fn ids(&self, ids: &[u32]) -> Result<Tensor> {
        Tensor::new(ids, &self.device)
    }
}

/// What candle says, without the backtrace that it appends where RUST_BACKTRACE is set.
fn told(error: &Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
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
        self.0 = computed.map_err(|error| told(&error));
    }
}

/// A linear layer's weights, `[outputs, inputs]`, as stored.
#[derive(Debug)]
pub struct Matrix(Tensor);

/// A norm's weight, f32 `[width]`.
#[derive(Debug)]
pub struct Vector(Tensor);

/// f32 `[positions, head_dim / 2]` each, and what queries are multiplied by, `[positions, 1]`.
#[derive(Debug)]
pub struct Rope {
    cosines: Tensor,
    sines: Tensor,
    growth: Option<Tensor>,
}
