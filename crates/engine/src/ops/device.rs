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
        let names: Vec<DeviceName> =
            list.split(',').map(|name| DeviceName::named(name.trim())).collect::<Result<_, _>>()?;
        for (index, name) in names.iter().enumerate() {
            if names[..index].contains(name) {
                let problem = format!("{name} is named twice by --device");
                let hint = "engines on one device share it as it is: name it once";
                return Err(OpsError::refused(problem, hint));
            }
        }
        let devices: Vec<Device> =
            names.into_iter().map(|name| name.open(threads)).collect::<Result<_, _>>()?;
        let kinds: Vec<String> = devices.iter().map(Device::describe).collect();
        match kinds.iter().find(|kind| **kind != kinds[0]) {
            Some(other) => {
                let one = &kinds[0];
                let problem =
                    format!("a panel cannot run on {one} and {other} at once: their bits differ");
                Err(OpsError::refused(problem, "take GPUs of one compute capability"))
            }
            None => Ok(devices),
        }
    }

    /// Refuses a list with a name that is none, before anything is opened.
    pub fn check_names(list: &str) -> Result<(), OpsError> {
        list.split(',').try_for_each(|name| DeviceName::named(name.trim()).map(|_| ()))
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
                let problem = format!("--fast is not supported on {}", self.describe());
                return Err(OpsError::refused(problem, "leave --fast out, or take --device cuda"));
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
enum DeviceName {
    Cpu,
    Metal,
    Cuda(usize),
}

impl DeviceName {
    fn named(name: &str) -> Result<DeviceName, OpsError> {
        let unknown =
            || OpsError::unknown(format!("`{name}` is no device; known: cpu, cuda, cuda:N, metal"));
        match name.split_once(':') {
            None if name == "cpu" => Ok(DeviceName::Cpu),
            None if name == "metal" => Ok(DeviceName::Metal),
            None if name == "cuda" => Ok(DeviceName::Cuda(0)),
            Some(("cuda", ordinal)) => {
                Ok(DeviceName::Cuda(ordinal.parse().map_err(|_| unknown())?))
            }
            _ => Err(unknown()),
        }
    }

    fn open(self, threads: usize) -> Result<Device, OpsError> {
        Ok(match self {
            DeviceName::Cpu => Device::cpu(threads)?,
            DeviceName::Metal => Device::Metal(Metal::open(threads)?),
            DeviceName::Cuda(ordinal) => Device::Cuda(Cuda::open(ordinal)?),
        })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Cpu => formatter.write_str("cpu"),
            DeviceName::Metal => formatter.write_str("metal"),
            DeviceName::Cuda(ordinal) => write!(formatter, "cuda:{ordinal}"),
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
            assert!(error.to_string().contains("is no device"), "{name}: {error}");
        }
    }

    #[test]
    fn a_device_is_named_once() {
        for list in ["cpu,cpu", "cuda, cuda:0", "cuda:1,cuda:0,cuda:1"] {
            let error = Device::open(list, 1).unwrap_err();
            assert!(error.to_string().contains("is named twice"), "{list}: {error}");
        }
    }
}
