//! What the GPU can do at most: bytes moved, and multiply-adds of bf16 tiles and of f32 numbers.

use std::time::{Duration, Instant};

use super::Cuda;
use super::arguments::Arguments;
use super::driver::Launch;
use super::kernels::WARPGROUP_TILE_BYTES;
use crate::ops::Limits;

/// Each rate is the best of several goes.
const GOES: usize = 7;
/// Of one launch of the arithmetic: enough CTAs for any GPU, and milliseconds of work for each.
const CTAS: usize = 4224;
const THREADS: usize = 256;
const ROUNDS: usize = 2048;
/// Multiply-adds of a thread in a round: eight products of tiles by 32 lanes; eight of a warpgroup's, by 128 threads,
/// in rounds that are fewer; and eight numbers.
const TILES_PER_ROUND: f64 = 8.0 * 16.0 * 8.0 * 16.0 / 32.0;
const WARPGROUP_TILES_PER_ROUND: f64 = 8.0 * 64.0 * 128.0 * 16.0 / 128.0;
const WARPGROUP_ROUNDS: usize = ROUNDS / 16;
const NUMBERS_PER_ROUND: f64 = 8.0;

impl Cuda {
    /// Takes every rate. Bytes are those read and written by a copy inside the GPU of half of `buffer_bytes`; the
    /// bf16 rate is that of the instruction that products of many rows use, `wgmma` or `mma.sync`.
    pub fn measure_limits(&self, buffer_bytes: usize) -> Limits {
        let per_round = (ROUNDS * CTAS * THREADS) as f64;
        let bf16_rate = if self.warpgroups {
            let per_round = (WARPGROUP_ROUNDS * CTAS * THREADS) as f64;
            per_round * WARPGROUP_TILES_PER_ROUND / self.warpgroup_seconds()
        } else {
            per_round * TILES_PER_ROUND / self.arithmetic_seconds(1)
        };
        Limits {
            bytes_per_second: self.copy_rate(buffer_bytes / 2).unwrap_or(0.0),
            f32_multiply_adds_per_second: per_round * NUMBERS_PER_ROUND
                / self.arithmetic_seconds(0),
            bf16_multiply_adds_per_second: Some(bf16_rate),
            i8_multiply_adds_per_second: None,
        }
    }

    fn copy_rate(&self, bytes: usize) -> Option<f64> {
        let from = self.stream.allocate(bytes, "a measurement").ok()?;
        let to = self.stream.allocate(bytes, "a measurement").ok()?;
        let elapsed = self.best(|| self.stream.copy(&from, &to, bytes));
        Some(2.0 * bytes as f64 / elapsed.as_secs_f64())
    }

    /// `kind` 0: f32 numbers, 1: bf16 tiles.
    fn arithmetic_seconds(&self, kind: usize) -> f64 {
        let launch = Launch {
            function: self.kernels.multiply_tiles,
            grid: [CTAS, 1, 1],
            threads: THREADS,
            shared_bytes: 0,
            early: false,
        };
        let multiply = || {
            let arguments = Arguments::default().int(ROUNDS).int(kind).address(0);
            self.stream.launch(launch, arguments);
        };
        self.best(multiply).as_secs_f64()
    }

    fn warpgroup_seconds(&self) -> f64 {
        let launch = Launch {
            function: self.kernels.multiply_warpgroup_tiles,
            grid: [CTAS, 1, 1],
            threads: THREADS,
            shared_bytes: WARPGROUP_TILE_BYTES,
            early: false,
        };
        let multiply = || {
            let arguments = Arguments::default().int(WARPGROUP_ROUNDS).address(0);
            self.stream.launch(launch, arguments);
        };
        self.best(multiply).as_secs_f64()
    }

    fn best(&self, work: impl Fn()) -> Duration {
        let go = |_| {
            let started = Instant::now();
            work();
            // What fails here is told by the next draw.
            let _ = self.stream.synchronise();
            started.elapsed()
        };
        (0..GOES).map(go).min().unwrap_or_default()
    }
}
