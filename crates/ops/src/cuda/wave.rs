//! Matmuls of up to 128 rows whose CTAs run all at once: how they are cut, and where they have room.

use super::matrix::Format;

/// By the most rows that each takes.
pub const WAVES: [Wave; 3] = [
    Wave { rows: 16, groups: 12, threads: 1024 },
    Wave { rows: 64, groups: 12, threads: 512 },
    Wave { rows: 128, groups: 8, threads: 256 },
];

/// A warpgroup's groups of 16 outputs, a warp each.
const WARPGROUP: usize = 4;

/// See kernels/matmul_wave.cuh.
#[derive(Clone, Copy, Debug)]
pub struct Wave {
    pub rows: usize,
    /// Groups of a CTA at most.
    pub groups: usize,
    /// Threads that a multiprocessor's registers are enough for.
    threads: usize,
}

impl Wave {
    /// Dynamic shared memory of a CTA of so many groups: four stages, which the sums of a chunk take the place of, and barriers.
    pub fn shared_bytes(self, format: Format, groups: usize) -> usize {
        let weights = match format {
            Format::Bf16 => 2048,
            Format::Q8_0 => 1088,
            Format::Q4K => 704,
            // There is no such kernel: weights kept so have a matmul of their own.
            Format::F32 => 4096,
        };
        4 * (self.rows * 128 + groups * weights) + 4 * 8 * (2 + groups)
    }

    /// CTAs of so many groups that a multiprocessor of Hopper has room for.
    fn on_one(self, format: Format, groups: usize) -> usize {
        // Each CTA takes a kilobyte besides.
        let by_memory = (228 << 10) / (self.shared_bytes(format, groups) + 1024);
        by_memory.min(self.threads / (32 * groups))
    }
}

/// What a choice of kernels takes of the GPU into account; all but the first are kernels by wgmma.
#[derive(Clone, Copy, Debug)]
pub struct Room {
    pub multiprocessors: usize,
    /// Whether units, the CTAs that stay, may be taken for many rows.
    pub units: bool,
    /// Clusters of four CTAs, each of which fills a multiprocessor, that run at once; `None` where there are no waves.
    pub clusters: Option<usize>,
    /// Whether warpgroups may attend to prompts.
    pub attention: bool,
}

impl Room {
    pub fn without_wgmma(multiprocessors: usize) -> Room {
        Room { multiprocessors, units: false, clusters: None, attention: false }
    }

    /// The CTAs along the inputs of a matmul in one wave, and the groups of each, where all have room at once: so that the
    /// fullest multiprocessor has the fewest weights; and of equal cuts the one with the most bytes on their way.
    pub fn wave(self, format: Format, outputs: usize, wave: Wave) -> Option<[usize; 2]> {
        let clusters = self.clusters?;
        let all = outputs.div_ceil(16);
        let sizes = (1..=wave.groups / WARPGROUP).map(|warpgroups| warpgroups * WARPGROUP);
        let split = sizes.clone().map(|groups| ([4, groups], clusters));
        let whole = sizes.rev().map(|groups| ([1, groups], self.multiprocessors));
        let fitting = split.chain(whole).filter(|([_, groups], places)| {
            all.div_ceil(*groups) <= places * wave.on_one(format, *groups)
        });
        let fullest = |[chunks, groups]: [usize; 2]| {
            let ctas = all.div_ceil(groups) * chunks;
            ctas.div_ceil(self.multiprocessors) * groups * (4 / chunks)
        };
        fitting.map(|(cut, _)| cut).min_by_key(|cut| fullest(*cut))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H100: Room =
        Room { multiprocessors: 132, units: false, clusters: Some(30), attention: false };

    fn cuts(wave: Wave) -> [Option<[usize; 2]>; 4] {
        // Of Qwen3-4B: `down` and `o`, `qkv`, gates with ups, and logits.
        [2560, 6144, 19_456, 151_936].map(|outputs| H100.wave(Format::Bf16, outputs, wave))
    }

    #[test]
    fn ctas_run_at_once_and_share_the_weights_evenly() {
        assert_eq!(cuts(WAVES[0]), [Some([4, 4]), Some([4, 4]), Some([1, 12]), None]);
        assert_eq!(cuts(WAVES[1]), [Some([4, 4]), Some([4, 8]), Some([1, 12]), None]);
    }

    #[test]
    fn without_clusters_there_are_no_waves() {
        let [wave, ..] = WAVES;
        assert_eq!(Room { clusters: None, ..H100 }.wave(Format::Bf16, 2560, wave), None);
        let alone = Room { clusters: Some(0), ..H100 }.wave(Format::Bf16, 2560, wave);
        assert_eq!(alone, Some([1, 4]));
    }
}
