//! What a panel computes on, as `--device` names it: this machine's threads, or GPUs.

use super::{Backend, Cpu, Cuda, Limits, Machine, Metal, OpsError};

/// One thing that computes.
#[derive(Clone, Debug)]
pub enum Device {
    Cpu(Cpu),
    Cuda(Cuda),
    Metal(Metal),
}

impl Device {
    /// The devices of a list: `cpu`, `cuda` (the first GPU), `cuda:0,cuda:1`, or `metal`. Engines take turns
    /// on them.
    ///
    /// # Errors
    /// A name that is none, a GPU that is not there, GPUs whose bits would differ.
    pub fn open(list: &str, threads: usize) -> Result<Vec<Device>, OpsError> {
        let names = list.split(',').map(str::trim);
        let devices: Vec<Device> = names
            .map(|name| Device::open_one(name, threads))
            .collect::<Result<_, _>>()?;
        let kinds: Vec<String> = devices.iter().map(Device::kind).collect();
        match kinds.iter().find(|kind| **kind != kinds[0]) {
            Some(other) => Err(OpsError::MixedDevices {
                one: kinds[0].clone(),
                other: other.clone(),
            }),
            None => Ok(devices),
        }
    }

    fn open_one(name: &str, threads: usize) -> Result<Device, OpsError> {
        let ordinal = match name.split_once(':') {
            None if name == "cpu" => {
                let cpu = Cpu::new(threads).map_err(|error| OpsError::NoDevice {
                    device: "pool of threads".to_owned(),
                    reason: error.to_string(),
                })?;
                return Ok(Device::Cpu(cpu));
            }
            None if name == "metal" => return Ok(Device::Metal(Metal::open(threads)?)),
            None if name == "cuda" => Some(0),
            Some(("cuda", ordinal)) => ordinal.parse().ok(),
            _ => None,
        };
        let ordinal = ordinal.ok_or_else(|| OpsError::DeviceName(name.to_owned()))?;
        Ok(Device::Cuda(Cuda::open(ordinal)?))
    }

    /// Gives up the promise that a row's bits depend on its own inputs alone, where that makes the device faster.
    ///
    /// # Errors
    /// Any but a GPU of the CUDA backend.
    pub fn hurry(&mut self) -> Result<(), OpsError> {
        match self {
            Device::Cuda(gpu) => gpu.hurry(),
            Device::Cpu(_) | Device::Metal(_) => {
                return Err(OpsError::NotFaster {
                    device: self.kind(),
                });
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

    /// What decides the bits.
    pub fn kind(&self) -> String {
        match self {
            Device::Cpu(cpu) => cpu.kind(),
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

    /// What the device can do at most. `buffer_bytes` should be many times what its caches hold.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Limits {
        match self {
            Device::Cpu(cpu) => cpu.measure_limits(buffer_bytes),
            Device::Cuda(gpu) => gpu.measure_limits(buffer_bytes),
            Device::Metal(gpu) => gpu.measure_limits(buffer_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert!(matches!(
            Device::open("cpu", 1).unwrap()[..],
            [Device::Cpu(_)]
        ));
        for name in ["gpu", "cuda:x", "cuda:", "", "cpu,rocm", "metal:0"] {
            let error = Device::open(name, 1).unwrap_err();
            assert!(matches!(error, OpsError::DeviceName(_)), "{name}: {error}");
        }
    }
}
