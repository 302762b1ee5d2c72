//! What a panel computes on, as `--device` names it: this machine's threads, or GPUs.

use std::fmt;

use super::{Cpu, Cuda, Limits, Machine, Metal, OpsError, Precision};

#[derive(Clone, Debug)]
pub enum Device {
    Cpu(Cpu),
    Cuda(Cuda),
    Metal(Metal),
}

impl Device {
    /// The devices of a list: `cpu`, `cuda` (the first GPU), `cuda:0,cuda:1`, or `metal`. Engines take turns on them.
    ///
    /// # Errors
    /// A name that is none or stands twice, a GPU that is not there, GPUs whose bits would differ.
    pub fn open(list: &str, threads: usize) -> Result<Vec<Device>, OpsError> {
        let places: Vec<Place> =
            list.split(',').map(|name| Place::named(name.trim())).collect::<Result<_, _>>()?;
        for (index, place) in places.iter().enumerate() {
            if places[..index].contains(place) {
                return Err(OpsError::RepeatedDevice(place.to_string()));
            }
        }
        let devices: Vec<Device> =
            places.into_iter().map(|place| place.open(threads)).collect::<Result<_, _>>()?;
        let kinds: Vec<String> = devices.iter().map(Device::describe).collect();
        match kinds.iter().find(|kind| **kind != kinds[0]) {
            Some(other) => {
                Err(OpsError::MixedDevices { one: kinds[0].clone(), other: other.clone() })
            }
            None => Ok(devices),
        }
    }

    /// Refuses a list with a name that is none, before anything is opened.
    pub fn check_names(list: &str) -> Result<(), OpsError> {
        list.split(',').try_for_each(|name| Place::named(name.trim()).map(|_| ()))
    }

    /// So many of this machine's threads.
    pub fn cpu(threads: usize) -> Result<Device, OpsError> {
        let device = "pool of threads".to_owned();
        let cpu = Cpu::new(threads)
            .map_err(|error| OpsError::NoDevice { device, reason: error.to_string() });
        Ok(Device::Cpu(cpu?))
    }

    /// Gives up the promise that a row's bits depend on its own inputs alone, where that makes the device faster.
    ///
    /// # Errors
    /// Any but a GPU of the CUDA backend.
    pub fn set_fast_math(&mut self) -> Result<(), OpsError> {
        match self {
            Device::Cuda(gpu) => gpu.set_fast_math(),
            Device::Cpu(_) | Device::Metal(_) => {
                return Err(OpsError::NotFaster { device: self.describe() });
            }
        }
        Ok(())
    }

    pub fn machine(&self) -> Machine {
        match self {
            Device::Cpu(_) => Machine::Cpu,
            Device::Cuda(_) => Machine::Cuda,
            Device::Metal(_) => Machine::Metal,
        }
    }

    /// What the bits of completions depend on, beside the model and the request: two machines of one kind give the same
    /// bits from weights kept in these ways. On a CPU the instruction set counts for bf16 weights alone.
    pub fn kind(&self, weights: impl IntoIterator<Item = Precision>) -> String {
        match self {
            Device::Cpu(cpu) => {
                let kinds = weights.into_iter().map(|precision| cpu.kind(precision));
                // The longest name is the one with the instruction set.
                let kind = kinds.max_by_key(String::len);
                kind.unwrap_or_else(|| std::env::consts::ARCH.to_owned())
            }
            Device::Cuda(gpu) => gpu.kind(),
            Device::Metal(gpu) => gpu.kind(),
        }
    }

    /// The hardware in use, for people.
    pub fn describe(&self) -> String {
        match self {
            Device::Cpu(cpu) => cpu.describe(),
            Device::Cuda(gpu) => gpu.kind(),
            Device::Metal(gpu) => gpu.kind(),
        }
    }

    /// Threads of the host that engines compute with.
    pub fn threads(&self) -> usize {
        match self {
            Device::Cpu(cpu) => cpu.threads(),
            Device::Cuda(gpu) => gpu.threads(),
            Device::Metal(gpu) => gpu.threads(),
        }
    }

    /// Bytes that models may still take on a device with memory of its own.
    pub fn own_memory(&self) -> Option<usize> {
        match self {
            Device::Cpu(_) | Device::Metal(_) => None,
            Device::Cuda(gpu) => Some(gpu.available_memory()),
        }
    }

    /// What the device can do at most. `buffer_bytes` of this machine's memory should be many times what its caches
    /// hold; a GPU takes of its own.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Result<Limits, OpsError> {
        match self {
            Device::Cpu(cpu) => Ok(cpu.measure_limits(buffer_bytes)),
            Device::Cuda(gpu) => gpu.measure_limits(),
            Device::Metal(gpu) => Ok(gpu.measure_limits(buffer_bytes)),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    Cpu,
    Metal,
    Cuda(usize),
}

impl Place {
    fn named(name: &str) -> Result<Place, OpsError> {
        let unknown = || OpsError::DeviceName(name.to_owned());
        match name.split_once(':') {
            None if name == "cpu" => Ok(Place::Cpu),
            None if name == "metal" => Ok(Place::Metal),
            None if name == "cuda" => Ok(Place::Cuda(0)),
            Some(("cuda", ordinal)) => Ok(Place::Cuda(ordinal.parse().map_err(|_| unknown())?)),
            _ => Err(unknown()),
        }
    }

    fn open(self, threads: usize) -> Result<Device, OpsError> {
        Ok(match self {
            Place::Cpu => Device::cpu(threads)?,
            Place::Metal => Device::Metal(Metal::open(threads)?),
            Place::Cuda(ordinal) => Device::Cuda(Cuda::open(ordinal)?),
        })
    }
}

impl fmt::Display for Place {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Cpu => formatter.write_str("cpu"),
            Place::Metal => formatter.write_str("metal"),
            Place::Cuda(ordinal) => write!(formatter, "cuda:{ordinal}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert!(matches!(Device::open("cpu", 1).unwrap()[..], [Device::Cpu(_)]));
        for name in ["gpu", "cuda:x", "cuda:", "", "cpu,rocm", "metal:0"] {
            let error = Device::open(name, 1).unwrap_err();
            assert!(matches!(error, OpsError::DeviceName(_)), "{name}: {error}");
        }
    }

    #[test]
    fn a_device_is_named_once() {
        for list in ["cpu,cpu", "cuda, cuda:0", "cuda:1,cuda:0,cuda:1"] {
            let error = Device::open(list, 1).unwrap_err();
            assert!(matches!(error, OpsError::RepeatedDevice(_)), "{list}: {error}");
        }
    }
}
