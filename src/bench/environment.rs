//! The hardware, the build and the measured bandwidth that a report's figures belong to.

use serde::Serialize;

use crate::experiment::plan::HostPlan;
use crate::experiment::utc_now;
use crate::model::{available_memory, peak_memory};
use crate::ops::{Device, OpsError};
use crate::panel::memory::gibibytes;

/// Of the memory that rates are read from at most, many times what caches hold.
pub const BUFFER_BYTES: usize = 1 << 30;

#[derive(Clone, Debug, Serialize)]
pub struct Environment {
    /// In UTC (RFC 3339).
    pub created_at: String,
    pub hardware: HostPlan,
    /// The instruction set.
    pub device_kind: String,
    pub threads: usize,
    pub build: Build,
    /// Read of the device's memory, measured.
    pub bytes_per_second: Option<f64>,
    /// Of the process, mapped files included; `None` where the system does not say.
    pub peak_memory_bytes: Option<usize>,
}

#[derive(Clone, Debug, Serialize)]
pub struct Build {
    pub version: &'static str,
    pub profile: &'static str,
}

impl Environment {
    /// To be called after the tests, when their memory is free again: reads the peak memory first, then measures the
    /// bandwidth with a buffer of at most a quarter of the free memory.
    ///
    /// # Errors
    /// When a GPU refuses.
    pub fn measure(hardware: HostPlan, device: &Device) -> Result<Environment, OpsError> {
        let peak_memory_bytes = peak_memory();
        let profile = match cfg!(debug_assertions) {
            true => "dev",
            false => "release",
        };
        Ok(Environment {
            created_at: utc_now(),
            hardware,
            device_kind: device.describe(),
            threads: device.threads(),
            build: Build { version: env!("CARGO_PKG_VERSION"), profile },
            bytes_per_second: device.bytes_per_second(BUFFER_BYTES.min(available_memory() / 4))?,
            peak_memory_bytes,
        })
    }

    /// Two lines: machine and build, then the bandwidth.
    pub fn describe(&self) -> String {
        let hardware = &self.hardware;
        let rate = |bytes: f64| format!("\nbandwidth, measured: {:.1} GB/s read", bytes / 1e9);
        format!(
            "{}, {} threads on {} cores, {}, {} of memory; wardround {} ({}){}",
            hardware.cpu,
            self.threads,
            hardware.cores,
            self.device_kind,
            gibibytes(usize::try_from(hardware.memory_bytes).unwrap_or(usize::MAX)),
            self.build.version,
            self.build.profile,
            self.bytes_per_second.map_or(String::new(), rate),
        )
    }
}
