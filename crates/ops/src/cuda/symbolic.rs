//! Emulated GPUs whose numbers are hashes of how they were made (kernels/emulator_hashes.h), and what lies in their memory.

use std::sync::Arc;

use half::bf16;

use super::driver::Stream;
use super::kernels::Kernels;
use super::{Buffer, Cuda, Vector};
use crate::{Backend, OpsError};

/// What of a GPU its schedules depend on.
#[derive(Clone, Copy, Debug)]
pub struct Like {
    pub multiprocessors: usize,
    pub warpgroups: bool,
    pub clusters: bool,
    /// Threads and CTAs take turns at random, from this seed; in order where it is 0.
    pub turns: u64,
}

impl Cuda {
    /// One that computes as such a GPU does. Neither the sampler's kernels nor what scores tokens have hashes: they decide by numbers.
    ///
    /// # Errors
    /// When the system has no room.
    pub fn symbolic(like: Like) -> Result<Cuda, OpsError> {
        let stream = Stream::symbolic(like);
        let kernels = Arc::new(Kernels::load(&stream)?);
        Ok(Cuda { warpgroups: like.warpgroups, ..Cuda::on(stream, kernels)? })
    }

    /// The first `rows` rows of `buffer`, however it keeps them.
    ///
    /// # Errors
    /// A failure of the machine since the last call.
    pub fn held(&self, buffer: &Buffer, rows: usize) -> Result<Vec<f32>, OpsError> {
        if buffer.is_wide {
            return self.read(buffer, rows);
        }
        let bytes = 2 * rows * buffer.stride;
        let mut back = self.stream.pin(bytes)?;
        self.stream.download(&buffer.region, &mut back, bytes)?;
        let halves = back.bytes()[..bytes].as_chunks::<2>().0;
        let rows = halves.chunks_exact(buffer.stride).flat_map(|row| &row[..buffer.width]);
        Ok(rows.map(|half| bf16::from_le_bytes(*half).to_f32()).collect())
    }
}

impl Buffer {
    /// Rows and numbers in each, of the last operation that wrote it; a decoding step's rows are those of its bucket.
    pub fn shape(&self) -> [usize; 2] {
        [self.rows, self.width]
    }
}

impl Vector {
    /// # Errors
    /// A failure of the machine since the last call.
    pub fn numbers(&self, gpu: &Cuda) -> Result<Vec<f32>, OpsError> {
        let bytes = self.0.bytes();
        let mut back = gpu.stream.pin(bytes)?;
        gpu.stream.download(&self.0, &mut back, bytes)?;
        let numbers = back.bytes()[..bytes].as_chunks::<4>().0;
        Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
    }
}
