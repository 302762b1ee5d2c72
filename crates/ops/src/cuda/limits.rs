//! What the GPU can do at most: bytes moved, and multiply-adds of bf16 tiles and of f32 numbers.

use std::time::{Duration, Instant};

use super::Cuda;
use super::arguments::Arguments;
use super::kernels::WARPGROUP_TILE_BYTES;
use super::launch::Launch;
use crate::{Limits, OpsError};

/// Each rate is the best of several goes, each of milliseconds: a launch and the wait for it take microseconds.
const GOES: usize = 7;
/// What is copied at most, far more than a second cache holds.
const COPY_BYTES: usize = 4 << 30;
/// Of one launch of the arithmetic: enough CTAs for any GPU, and milliseconds of work for each.
const CTAS: usize = 4224;
const THREADS: usize = 256;
/// Rounds of eight f32 numbers a thread; of eight tiles a warp; and of eight tiles a warpgroup.
const NUMBER_ROUNDS: usize = 16_384;
const TILE_ROUNDS: usize = 2048;
const WARPGROUP_ROUNDS: usize = 128;
/// Multiply-adds of a thread in a round.
const NUMBERS_PER_ROUND: usize = 8;
const TILES_PER_ROUND: usize = 8 * 16 * 8 * 16 / 32;
const WARPGROUP_TILES_PER_ROUND: usize = 8 * 64 * 128 * 16 / 128;

impl Cuda {
    /// Takes every rate. Bytes are those read and written by a copy inside the GPU; the bf16 rate is that of the
    /// instruction that products of many rows use, `wgmma` or `mma.sync`, on random operands: a GPU is slower on them
    /// than on zeros, which take less power.
    pub fn measure_limits(&self) -> Result<Limits, OpsError> {
        let rate = |kernel, rounds, per_round: usize| {
            let seconds = self.arithmetic_seconds(kernel, rounds)?;
            Ok((CTAS * THREADS * rounds * per_round) as f64 / seconds)
        };
        let launch = |function, shared_bytes| Launch {
            shared_bytes,
            early: false,
            ..Launch::new(function, [CTAS, 1, 1], THREADS)
        };
        let kernels = &self.kernels;
        let numbers = launch(kernels.multiply_numbers, 0);
        let bf16_rate = if self.warpgroups {
            let tiles = launch(kernels.multiply_warpgroup_tiles, WARPGROUP_TILE_BYTES);
            rate(tiles, WARPGROUP_ROUNDS, WARPGROUP_TILES_PER_ROUND)
        } else {
            rate(launch(kernels.multiply_tiles, 0), TILE_ROUNDS, TILES_PER_ROUND)
        };
        Ok(Limits {
            bytes_per_second: self.copy_rate(COPY_BYTES.min(self.available_memory() / 4))?,
            f32_multiply_adds_per_second: rate(numbers, NUMBER_ROUNDS, NUMBERS_PER_ROUND)?,
            bf16_multiply_adds_per_second: Some(bf16_rate?),
            i8_multiply_adds_per_second: None,
        })
    }

    fn copy_rate(&self, bytes: usize) -> Result<f64, OpsError> {
        let from = self.stream.allocate(bytes, "a measurement")?;
        let to = self.stream.allocate(bytes, "a measurement")?;
        let elapsed = self.best(|| self.stream.copy(&from, &to, bytes))?;
        Ok(2.0 * bytes as f64 / elapsed.as_secs_f64())
    }

    /// For one launch of an arithmetic kernel.
    fn arithmetic_seconds(&self, launch: Launch, rounds: usize) -> Result<f64, OpsError> {
        let elapsed = self.best(|| {
            let arguments = Arguments::default().int(rounds).address(0);
            self.stream.launch(launch, arguments);
        })?;
        Ok(elapsed.as_secs_f64())
    }

    fn best(&self, work: impl Fn()) -> Result<Duration, OpsError> {
        let go = |_| {
            let started = Instant::now();
            work();
            self.stream.synchronise()?;
            Ok(started.elapsed())
        };
        let goes: Vec<Duration> = (0..GOES).map(go).collect::<Result<_, OpsError>>()?;
        Ok(goes.into_iter().min().unwrap_or_default())
    }
}
