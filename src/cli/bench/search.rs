//! `bench search`: measures exact search over random vectors, and compares it with the memory bandwidth.

use std::time::Instant;

use clap::{Args, ValueEnum};

use crate::cli::exit::Failure;
use crate::cli::vectors::VectorFlag;
use crate::console;
use crate::experiment::hardware::DeviceChoice;
use crate::model::available_memory;
use crate::ops::vectors::{Query, VectorRows, VectorType};
use crate::ops::{Cpu, Device};
use crate::random::mix;

/// The number of bytes read to measure the memory bandwidth.
const LIMIT_BYTES: usize = 1 << 28;

#[derive(Debug, Args)]
pub struct SearchBench {
    /// Number of vectors
    #[arg(long, default_value_t = 1_000_000, value_name = "N")]
    rows: usize,
    /// Vector dimensions
    #[arg(long, default_value_t = 256, value_name = "D")]
    dims: usize,
    /// Data type of the vectors
    #[arg(long, default_value = "f16", value_name = "TYPE", value_enum)]
    vectors: VectorFlag,
    /// Queries per batch
    #[arg(long, default_value_t = 1, value_name = "N")]
    queries: usize,
    /// Chunks to retrieve per query
    #[arg(long, default_value_t = 50, value_name = "K")]
    top_k: usize,
    /// Repetitions
    #[arg(long, default_value_t = 7, value_name = "N")]
    repeat: usize,
    #[command(flatten)]
    device: DeviceChoice,
}

impl SearchBench {
    pub fn run(self) -> Result<(), Failure> {
        let cpu = match self.device.one_device()? {
            Device::Cpu(cpu) => cpu,
            other => Cpu::new(other.threads())?,
        };
        let kept_as = VectorType::from(self.vectors);
        let stride = kept_as.stride(self.dims.min(1 << 32));
        if self.rows.saturating_mul(stride) > available_memory() {
            return Err(Failure::usage(
                "the vectors need more memory than is free",
                "give smaller --rows or --dims",
            ));
        }
        let (mut bytes, mut scales) = (Vec::new(), Vec::new());
        bytes.reserve(self.rows * stride);
        for row in 0..self.rows {
            let kept = kept_as.append(&self.vector(row as u64), &mut bytes, &mut scales);
            kept.map_err(|problem| {
                Failure::usage(format!("a vector {problem}"), "give larger --dims")
            })?;
        }
        let rows = VectorRows::new(&bytes, &scales, kept_as, self.dims);
        let rows = rows.ok_or_else(|| {
            Failure::usage("there are no vectors", "give --rows and --dims above 0")
        })?;
        let query = |number: usize| rows.query(&self.vector(mix(number as u64) | 1 << 63));
        let queries: Vec<Query> = (0..self.queries).map(query).collect();
        let whole = 0..self.rows;
        let all = std::slice::from_ref(&whole);
        let mut seconds = Vec::new();
        for _ in 0..self.repeat.max(1) + 1 {
            let start = Instant::now();
            cpu.scan(&rows, &queries, all, self.top_k);
            seconds.push(start.elapsed().as_secs_f64());
        }
        // The first one is a warm-up.
        let mut seconds = seconds.split_off(1);
        seconds.sort_by(f64::total_cmp);
        let median = seconds[seconds.len() / 2];
        let gigabytes = bytes.len() as f64 / median / 1e9;
        let limit = cpu.measure_limits(LIMIT_BYTES).bytes_per_second / 1e9;
        let kind = self.vectors.to_possible_value();
        Ok(console::say(format!(
            "{} x {} {}, {} at once, {} threads, {}: median {:.1} ms of {}, {gigabytes:.1} GB/s, {:.0} % of what the memory delivers ({limit:.1} GB/s)",
            self.rows,
            self.dims,
            kind.as_ref().map_or("", |kind| kind.get_name()),
            self.queries,
            cpu.threads(),
            cpu.describe(),
            median * 1e3,
            seconds.len(),
            100.0 * gigabytes / limit
        ))?)
    }

    /// A vector of pseudo-random numbers between −1 and 1 that depends on the row alone.
    fn vector(&self, row: u64) -> Vec<f32> {
        let number = |column: u64| (mix(row << 12 ^ column) >> 40) as f32 / (1 << 23) as f32 - 1.0;
        (0..self.dims as u64).map(number).collect()
    }
}
