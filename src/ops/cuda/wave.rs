//! Matmuls of a few dozen rows whose CTAs start all at once: how they are cut, where they have room, and with which few rows
//! they are faster than small ones.

use super::kernels::Product;
use super::matrix::Format;

/// The most rows that each of the matmuls of one wave takes, and the groups of 16 outputs that a CTA of it has at most.
pub const WAVES: [Wave; 2] = [Wave { rows: 64, groups: 12 }, Wave { rows: 128, groups: 10 }];
/// The same of few rows, which is there for bf16 alone: of blocks of weights such products are bound by instructions, of
/// which small CTAs have fewer.
pub const NARROW_WAVE: Wave = Wave { rows: 32, groups: 12 };

/// How much faster a multiprocessor reads of the second cache than of memory, when all do, in tenths: 35 bytes a clock by the
/// 132 of an H200, beside 4.3 TB/s; see benches/gpu_model.py.
const CACHE_OVER_MEMORY: usize = 19;

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
        let stages = match self.rows {
            32 => 6,
            64 => 5,
            _ => 4,
        };
        stages * (self.rows * 128 + groups * weights) + groups * self.rows * 64
    }
}

/// What a choice of matmul takes of the GPU into account.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub multiprocessors: usize,
    /// Whether warpgroups' kernels may be taken.
    pub warpgroups: bool,
    /// Clusters of four CTAs, each of which fills a multiprocessor, that run at once; `None` where CTAs are not clustered.
    pub clusters: Option<usize>,
}

impl Room {
    /// The CTAs along the inputs of a matmul in one wave, and the groups of each, where so many at most have room: a CTA for
    /// each chunk of inputs reads the fewest bytes.
    pub fn wave(self, outputs: usize, most_groups: usize) -> Option<[usize; 2]> {
        let groups = outputs.div_ceil(16);
        let blocks = [(4, self.clusters?), (1, self.multiprocessors)];
        blocks.into_iter().find_map(|(chunks, blocks)| {
            let each = groups.div_ceil(blocks.max(1));
            (blocks > 0 && each <= most_groups).then_some([chunks, each])
        })
    }

    /// Whether few rows of bf16 are multiplied faster in such a wave than by small CTAs of so many outputs each, all inputs
    /// and all rows. The fullest multiprocessor decides, by the bytes that it asks the second cache for, if those take longer
    /// than memory takes for all weights: 160 small CTAs leave 28 of 132 multiprocessors two, while the others idle, and each
    /// CTA asks for the rows again.
    pub fn wave_pays(self, size: Product, [chunks, groups]: [usize; 2], small: usize) -> bool {
        let Product { rows, outputs, .. } = size;
        // What is read of weights and rows for one input, in forties of numbers.
        let memory = 4 * CACHE_OVER_MEMORY * outputs / self.multiprocessors;
        let each = outputs.div_ceil(small).div_ceil(self.multiprocessors);
        let small = memory.max(40 * each * (small + rows));
        let wave = memory.max(40 / chunks * (16 * groups + rows));
        // What the model does not know may take as much as a small gain: a wave's CTAs have fewer weights on their way before
        // their inputs are there.
        16 * small > 17 * wave
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H200: Room = Room { multiprocessors: 132, warpgroups: true, clusters: Some(32) };

    fn pays(room: Room, rows: usize, outputs: usize) -> bool {
        let size = Product { rows, outputs, inputs: 2560 };
        let wave = room.wave(outputs, NARROW_WAVE.groups);
        wave.is_some_and(|wave| room.wave_pays(size, wave, if rows > 16 { 32 } else { 16 }))
    }

    /// Of Qwen3-4B: `down` and `o`, `qkv`, gates with ups, and logits.
    #[test]
    fn few_rows_are_a_wave_where_small_ctas_would_leave_some_multiprocessors_more() {
        let found = [2560, 6144, 19_456, 151_936].map(|outputs| {
            let rows = [1, 2, 3, 4, 8, 9, 16, 17, 32].into_iter();
            rows.filter(|rows| pays(H200, *rows, outputs)).collect::<Vec<_>>()
        });
        let expected: [&[usize]; 4] = [&[4, 8, 9, 16, 17, 32], &[16, 17, 32], &[16, 32], &[]];
        assert_eq!(found, expected);
    }

    #[test]
    fn small_ctas_that_fill_a_gpu_stay() {
        // As many multiprocessors as CTAs, and rounds enough that the last one is no matter.
        assert!(!pays(Room { multiprocessors: 160, clusters: Some(40), ..H200 }, 8, 2560));
        assert!(!pays(Room { multiprocessors: 16, clusters: Some(4), ..H200 }, 8, 1024));
        assert!(
            !pays(Room { clusters: None, ..H200 }, 8, 2560),
            "without clusters there are no waves"
        );
    }
}
