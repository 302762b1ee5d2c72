//! Matmuls of a few dozen rows whose CTAs start all at once: how they are cut, and where they have room.

use super::matrix::Format;

/// The most rows that each of the matmuls of one wave takes, and the groups of 16 outputs that a CTA of it has at most.
pub const WAVES: [Wave; 2] = [Wave { rows: 64, groups: 12 }, Wave { rows: 128, groups: 10 }];

/// See kernels/matmul_wave.cuh.
#[derive(Clone, Copy, Debug)]
pub struct Wave {
    pub rows: usize,
    pub groups: usize,
}

impl Wave {
    /// Dynamic shared memory of a CTA of so many groups: stages, and the sums of a chunk.
    pub fn shared_bytes(self, format: Format, groups: usize) -> usize {
        let weights = match format {
            Format::Bf16 => 2048,
            Format::Q8_0 => 1088,
            Format::Q4K => 704,
            // There is no such kernel: weights kept so have a matmul of their own.
            Format::F32 => 4096,
        };
        let stages = if self.rows == 64 { 5 } else { 4 };
        stages * (self.rows * 128 + groups * weights) + groups * self.rows * 64
    }
}

/// What a choice of matmul takes of the GPU into account.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub multiprocessors: usize,
    /// Whether warpgroups' kernels may be taken.
    pub warpgroups: bool,
    /// Whether CTAs may be clustered, by four.
    pub clusters: bool,
}

impl Room {
    /// The CTAs along the inputs of a matmul in one wave, and the groups of each, where so many at most have room: a CTA for
    /// each chunk of inputs reads the fewest bytes.
    pub fn wave(self, outputs: usize, most_groups: usize) -> Option<[usize; 2]> {
        let groups = outputs.div_ceil(16);
        // A cluster lies within one of the GPU's parts, of 16 or 18 multiprocessors.
        let blocks = [(4, self.multiprocessors / 16 * 4), (1, self.multiprocessors)];
        blocks.into_iter().filter(|_| self.clusters).find_map(|(chunks, blocks)| {
            let each = groups.div_ceil(blocks.max(1));
            (blocks > 0 && each <= most_groups).then_some([chunks, each])
        })
    }
}
