//! What a figure was taken on and with: hardware, build, limits. A figure without them says nothing.

use serde::Serialize;

use crate::model::{available_memory, peak_memory};
use crate::ops::{Limits, Ops};
use crate::panel::memory::gibibytes;
use crate::run::clock;
use crate::run::plan::HostPlan;

/// Far more than caches hold.
const BUFFER_BYTES: usize = 1 << 30;

#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// In UTC (RFC 3339).
    pub created_at: String,
    pub hardware: HostPlan,
    /// The instruction set.
    pub device_kind: String,
    pub threads: usize,
    pub build: Build,
    pub limits: MeasuredLimits,
    /// Of the whole process, mapped files included; `None` where the system does not say.
    pub peak_memory_bytes: Option<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Build {
    pub version: &'static str,
    pub profile: &'static str,
}

/// Taken in the same run, on the same threads.
#[derive(Clone, Debug, Serialize)]
pub struct MeasuredLimits {
    pub read_gigabytes_per_second: f64,
    pub f32_gigamacs_per_second: f64,
    pub bf16_gigamacs_per_second: Option<f64>,
    pub i8_gigamacs_per_second: Option<f64>,
    pub buffer_bytes: usize,
}

/// Takes the machine's limits, with a buffer that leaves most of the memory alone.
pub fn measure_limits(ops: &Ops) -> (Limits, MeasuredLimits) {
    let buffer_bytes = BUFFER_BYTES.min(available_memory() / 4);
    let limits = ops.measure_limits(buffer_bytes);
    let measured = MeasuredLimits {
        read_gigabytes_per_second: limits.bytes_per_second / 1e9,
        f32_gigamacs_per_second: limits.f32_per_second / 1e9,
        bf16_gigamacs_per_second: limits.bf16_per_second.map(|rate| rate / 1e9),
        i8_gigamacs_per_second: limits.i8_per_second.map(|rate| rate / 1e9),
        buffer_bytes,
    };
    (limits, measured)
}

impl Environment {
    /// As it is now: to be asked for after the work, for the peak of memory.
    pub fn capture(hardware: HostPlan, ops: &Ops, limits: MeasuredLimits) -> Environment {
        Environment {
            created_at: clock::utc_now(),
            hardware,
            device_kind: ops.kind(),
            threads: ops.threads(),
            build: Build {
                version: env!("CARGO_PKG_VERSION"),
                profile: if cfg!(debug_assertions) {
                    "dev"
                } else {
                    "release"
                },
            },
            limits,
            peak_memory_bytes: peak_memory(),
        }
    }

    /// Two lines: machine and build, then the limits.
    pub fn describe(&self) -> String {
        let (hardware, limits) = (&self.hardware, &self.limits);
        let narrow = |rate: Option<f64>, name: &str| {
            rate.map_or(String::new(), |rate| format!(", {rate:.1} in {name}"))
        };
        format!(
            "{}, {} threads on {} cores, {}, {} of memory; wardround {} ({})\n\
             limits, measured: {:.1} GB/s read; {:.1} billion multiply-adds/s in f32{}{}",
            hardware.cpu,
            self.threads,
            hardware.cores,
            self.device_kind,
            gibibytes(usize::try_from(hardware.memory_bytes).unwrap_or(usize::MAX)),
            self.build.version,
            self.build.profile,
            limits.read_gigabytes_per_second,
            limits.f32_gigamacs_per_second,
            narrow(limits.bf16_gigamacs_per_second, "bf16"),
            narrow(limits.i8_gigamacs_per_second, "8 bits"),
        )
    }

    /// For people.
    pub fn peak_memory(&self) -> String {
        self.peak_memory_bytes
            .map_or_else(|| "unknown".to_owned(), gibibytes)
    }
}
