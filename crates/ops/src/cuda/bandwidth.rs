//! What the GPU moves in its memory at most.

use std::time::{Duration, Instant};

use super::Cuda;
use crate::OpsError;

/// The rate is the best of several goes, each of milliseconds: a copy and the wait for it take microseconds.
const GOES: usize = 7;
/// What is copied at most, far more than a second cache holds.
const COPY_BYTES: usize = 4 << 30;

impl Cuda {
    /// Bytes read and written a second by a copy inside the GPU.
    pub fn bytes_per_second(&self) -> Result<f64, OpsError> {
        let bytes = COPY_BYTES.min(self.available_memory() / 4);
        let from = self.stream.allocate(bytes, "a measurement")?;
        let to = self.stream.allocate(bytes, "a measurement")?;
        let mut shortest = Duration::MAX;
        for _ in 0..GOES {
            let started = Instant::now();
            self.stream.copy(&from, &to, bytes);
            self.stream.synchronise()?;
            shortest = shortest.min(started.elapsed());
        }
        Ok(2.0 * bytes as f64 / shortest.as_secs_f64())
    }
}
