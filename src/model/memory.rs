//! The memory that a model needs, computed before it is loaded.

use super::config::Config;
use super::decoder::scratch_bytes;
use crate::ops::{Machine, PAGE, Precision, StepLimits, StoredType};

/// Bytes of one loaded model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    pub weights: usize,
    pub kv: usize,
    pub scratch: usize,
}

impl Footprint {
    /// For a pool of `pages` pages and steps within `limits`.
    pub fn of(
        config: &Config,
        precision: Precision,
        machine: Machine,
        pages: usize,
        limits: StepLimits,
    ) -> Footprint {
        Footprint {
            weights: precision.size_bytes(config.parameters()),
            kv: pages * machine.page_bytes(config.page_shape(), precision.kv),
            scratch: scratch_bytes(config, machine, limits),
        }
    }

    pub fn total(&self) -> usize {
        self.weights + self.kv + self.scratch
    }
}

impl Config {
    /// Numbers in the matrices; norms are too few to count.
    pub fn parameters(&self) -> usize {
        let (hidden, head_dim) = (self.hidden_size, self.head_dim);
        let attention = hidden * head_dim * (2 * self.heads + 2 * self.kv_heads);
        let feed_forward = 3 * hidden * self.intermediate_size;
        let tables = if self.tied_embeddings { 1 } else { 2 };
        self.layer_count() * (attention + feed_forward) + tables * self.vocab_size * hidden
    }

    /// Bytes of keys and values a token takes.
    pub fn kv_bytes_per_token(&self, machine: Machine, kept: StoredType) -> usize {
        machine.page_bytes(self.page_shape(), kept) / PAGE
    }
}

/// Peak resident memory of this process in bytes, mapped files included; `None` where the system does not report it.
pub fn peak_memory() -> Option<usize> {
    let status = fs_err::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: usize = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kibibytes << 10)
}

/// Bytes that this process may still allocate: the system's free memory or its control group's remaining limit;
/// `usize::MAX` where the system does not report them.
pub fn available_memory() -> usize {
    let Ok(mut system) = sysinfo::System::new() else {
        return usize::MAX;
    };
    system.refresh_memory();
    let free = system.available_memory();
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.free_memory);
    usize::try_from(free.min(limit)).unwrap_or(usize::MAX)
}
