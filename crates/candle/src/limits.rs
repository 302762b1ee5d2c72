//! What the GPU does of what decoding asks: bytes moved.

use std::time::{Duration, Instant};

use candle_core::{DType, Result, Tensor};

use wardround_ops::Limits;

use super::Metal;

/// The rate is the best of several goes.
const GOES: usize = 7;

impl Metal {
    /// Takes the rate; 0 where it cannot be taken. Bytes are those read and written by a pass over half of `buffer_bytes`.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Limits {
        let rate = self.host.take_turn(|| self.pass_rate(buffer_bytes / 2));
        Limits { bytes_per_second: rate.unwrap_or(0.0), multiply_adds_per_second: None }
    }

    fn pass_rate(&self, bytes: usize) -> Result<f64> {
        let from = Tensor::zeros(bytes / 4, DType::F32, &self.device)?;
        let go = |_| {
            let started = Instant::now();
            from.affine(2.0, 0.0)?;
            self.device.synchronize()?;
            Ok(started.elapsed())
        };
        // The first go may compile a kernel.
        let goes: Result<Vec<Duration>> = (0..GOES).map(go).collect();
        let shortest = goes?.into_iter().min().unwrap_or_default();
        Ok(2.0 * bytes as f64 / shortest.max(Duration::from_nanos(1)).as_secs_f64())
    }
}
