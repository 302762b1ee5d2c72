//! What a panel computes on, as `--device` names it: this machine's threads, or GPUs; by our operations or candle's.

use std::fmt;

use super::candle::Place;
use super::{Candle, Cpu, Cuda, Machine, OpsError, Precision};

#[derive(Clone, Debug)]
pub enum Device {
    Cpu(Cpu),
    Cuda(Cuda),
    Candle(Candle),
}

impl Device {
    /// The devices of a list: `cpu`, `cuda` (the first GPU), `cuda:0,cuda:1`, or one of candle's: `candle`
    /// (the CPU), `candle-cuda`, `candle-cuda:1`, `metal`. Engines take turns on them.
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

    pub fn machine(&self) -> Machine {
        match self {
            Device::Cpu(_) => Machine::Cpu,
            Device::Cuda(_) => Machine::Cuda,
            Device::Candle(_) => Machine::Candle,
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
            Device::Candle(candle) => candle.kind(),
        }
    }

    /// The hardware in use, for people.
    pub fn describe(&self) -> String {
        match self {
            Device::Cpu(cpu) => cpu.describe(),
            Device::Cuda(gpu) => gpu.kind(),
            Device::Candle(candle) => candle.kind(),
        }
    }

    /// Threads of the host that engines compute with.
    pub fn threads(&self) -> usize {
        match self {
            Device::Cpu(cpu) => cpu.threads(),
            Device::Cuda(gpu) => gpu.threads(),
            Device::Candle(candle) => candle.threads(),
        }
    }

    /// Bytes that models may still take on a device with memory of its own.
    pub fn own_memory(&self) -> Option<usize> {
        match self {
            Device::Cpu(_) => None,
            Device::Cuda(gpu) => Some(gpu.available_memory()),
            Device::Candle(candle) => candle.own_memory(),
        }
    }

    /// Bytes that the device reads of its memory a second, at most. `buffer_bytes` of this machine's memory should be many times
    /// what its caches hold; a GPU takes of its own. `None` of candle's, which do not say.
    pub fn bytes_per_second(&self, buffer_bytes: usize) -> Result<Option<f64>, OpsError> {
        match self {
            Device::Cpu(cpu) => Ok(Some(cpu.bytes_per_second(buffer_bytes))),
            Device::Cuda(gpu) => gpu.bytes_per_second().map(Some),
            Device::Candle(_) => Ok(None),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DeviceName {
    Cpu,
    Cuda(usize),
    Candle(Place),
}

impl DeviceName {
    fn named(name: &str) -> Result<DeviceName, OpsError> {
        let unknown = || {
            let known = "cpu, cuda, cuda:N, candle, candle-cuda, candle-cuda:N, metal";
            OpsError::unknown(format!("`{name}` is no device; known: {known}"))
        };
        let (kind, ordinal) = match name.split_once(':') {
            Some((kind, ordinal)) => (kind, Some(ordinal.parse().map_err(|_| unknown())?)),
            None => (name, None),
        };
        match (kind, ordinal) {
            ("cpu", None) => Ok(DeviceName::Cpu),
            ("cuda", _) => Ok(DeviceName::Cuda(ordinal.unwrap_or(0))),
            ("candle", None) => Ok(DeviceName::Candle(Place::Cpu)),
            ("candle-cuda", _) => Ok(DeviceName::Candle(Place::Cuda(ordinal.unwrap_or(0)))),
            ("metal", None) => Ok(DeviceName::Candle(Place::Metal)),
            _ => Err(unknown()),
        }
    }

    fn open(self, threads: usize) -> Result<Device, OpsError> {
        Ok(match self {
            DeviceName::Cpu => Device::cpu(threads)?,
            DeviceName::Cuda(ordinal) => Device::Cuda(Cuda::open(ordinal)?),
            DeviceName::Candle(place) => Device::Candle(Candle::open(place, threads)?),
        })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Cpu => formatter.write_str("cpu"),
            DeviceName::Cuda(ordinal) => write!(formatter, "cuda:{ordinal}"),
            DeviceName::Candle(place) => place.fmt(formatter),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_told_apart() {
        assert!(matches!(Device::open("cpu", 1).unwrap()[..], [Device::Cpu(_)]));
        assert!(matches!(Device::open("candle", 1).unwrap()[..], [Device::Candle(_)]));
        for name in ["gpu", "cuda:x", "cuda:", "", "cpu,rocm", "metal:0", "candle:0", "candle-"] {
            let error = Device::open(name, 1).unwrap_err();
            assert!(error.to_string().contains("is no device"), "{name}: {error}");
        }
    }

    #[test]
    fn our_operations_and_candles_are_no_panel() {
        let error = Device::open("cpu,candle", 1).unwrap_err();
        assert!(error.to_string().contains("and candle cpu at once"), "{error}");
    }

    #[test]
    fn a_device_is_named_once() {
        for list in ["cpu,cpu", "cuda, cuda:0", "cuda:1,cuda:0,cuda:1", "candle,candle"] {
            let error = Device::open(list, 1).unwrap_err();
            assert!(error.to_string().contains("is named twice"), "{list}: {error}");
        }
    }
}
