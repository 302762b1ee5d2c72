//! What the device moves in its memory, as candle's operations do it.

use std::time::{Duration, Instant};

use candle_core::{DType, Result, Tensor};

use super::Candle;

/// The rate is the best of several goes, of which the first may compile a kernel.
const GOES: usize = 7;

impl Candle {
    /// Bytes read and written a second by a pass over half of `buffer_bytes`; 0 where that cannot be done.
    pub fn bytes_per_second(&self, buffer_bytes: usize) -> f64 {
        self.host.take_turn(|| self.pass_rate(buffer_bytes / 2).unwrap_or(0.0))
    }

    fn pass_rate(&self, bytes: usize) -> Result<f64> {
        let from = Tensor::zeros(bytes / 4, DType::F32, &self.device)?;
        let mut shortest = Duration::MAX;
        for _ in 0..GOES {
            let started = Instant::now();
            from.affine(2.0, 0.0)?;
            self.device.synchronize()?;
            shortest = shortest.min(started.elapsed());
        }
        Ok(2.0 * bytes as f64 / shortest.max(Duration::from_nanos(1)).as_secs_f64())
    }
}
