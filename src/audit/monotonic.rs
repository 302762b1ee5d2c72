//! A clock that nobody can set: how long the machine has been up, and which start of it that was.

use crate::outside;

use std::time::Instant;

/// Counts from where the machine began.
pub(super) struct Clock {
    /// Which start of it that was.
    pub boot_id: String,
    up_ms: u64,
    began: Instant,
}

impl Clock {
    /// Where the system does not tell, it counts from here.
    pub(super) fn start() -> Clock {
        let read = |path: &str| outside::text(path).unwrap_or_default();
        let up = read("/proc/uptime");
        let seconds: f64 =
            up.split_whitespace().next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
        Clock {
            boot_id: read("/proc/sys/kernel/random/boot_id").trim().to_owned(),
            up_ms: (seconds * 1000.0) as u64,
            began: Instant::now(),
        }
    }

    pub(super) fn monotonic_ms(&self) -> u64 {
        self.up_ms + self.began.elapsed().as_millis() as u64
    }
}
