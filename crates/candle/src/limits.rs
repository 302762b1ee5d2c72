//! What the device does of what decoding asks: bytes moved, and multiply-adds of candle's matmul.

use std::time::{Duration, Instant};

use candle_core::{DType, Result, Tensor};

use wardround_ops::Limits;

use super::Candle;

/// Each rate is the best of several goes.
const GOES: usize = 7;
/// Rows and columns of the matrices; on CPUs, which are slower, a quarter.
const SIDE: usize = 4096;

impl Candle {
    /// Takes every rate; 0 where it cannot be taken. Bytes are those read and written by a pass over half of
    /// `buffer_bytes`.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Limits {
        self.measure(buffer_bytes, if self.device.is_cpu() { SIDE / 4 } else { SIDE })
    }

    pub(super) fn measure(&self, buffer_bytes: usize, side: usize) -> Limits {
        self.host.take_turn(|| Limits {
            bytes_per_second: self.pass_rate(buffer_bytes / 2).unwrap_or(0.0),
            f32_multiply_adds_per_second: self.matmul_rate(side, DType::F32).unwrap_or(0.0),
            bf16_multiply_adds_per_second: self.matmul_rate(side, DType::BF16).ok(),
            i8_multiply_adds_per_second: None,
        })
    }

    fn pass_rate(&self, bytes: usize) -> Result<f64> {
        let from = Tensor::zeros(bytes / 4, DType::F32, &self.device)?;
        let elapsed = self.best(|| from.affine(2.0, 0.0))?;
        Ok(2.0 * bytes as f64 / elapsed.as_secs_f64())
    }

    fn matmul_rate(&self, side: usize, numbers: DType) -> Result<f64> {
        let matrix = Tensor::zeros((side, side), numbers, &self.device)?;
        let elapsed = self.best(|| matrix.matmul(&matrix))?;
        Ok((side as f64).powi(3) / elapsed.as_secs_f64())
    }

    fn best(&self, work: impl Fn() -> Result<Tensor>) -> Result<Duration> {
        let go = || {
            let started = Instant::now();
            work()?;
            self.device.synchronize()?;
            Ok(started.elapsed())
        };
        // The first go may compile a kernel.
        let goes: Result<Vec<Duration>> = (0..GOES).map(|_| go()).collect();
        let shortest = goes?.into_iter().min().unwrap_or_default();
        Ok(shortest.max(Duration::from_nanos(1)))
    }
}
