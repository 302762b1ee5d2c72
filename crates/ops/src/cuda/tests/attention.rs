//! Attention over ragged sequences on shuffled pages: against the CPU, and decoding against prefill.

use super::sequences::Sequences;
use super::*;
use crate::{AttentionShape, Rows};

#[derive(Debug)]
pub struct Case {
    pub group: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub window: Option<usize>,
    /// Whole texts, whose rows see ahead.
    pub both_ways: bool,
}

impl Case {
    pub fn heads(&self) -> usize {
        self.group * self.kv_heads
    }

    pub fn width(&self) -> usize {
        (self.heads() + 2 * self.kv_heads) * self.head_dim
    }

    /// Queries, keys and values that bf16 holds, row after row.
    pub fn qkv(&self, sequences: &Sequences) -> Vec<f32> {
        let numbers = noise(sequences.rows() * self.width(), 1);
        numbers.into_iter().map(round).collect()
    }

    /// The same with the magnitudes of the values in their place.
    fn with_magnitudes(&self, qkv: &[f32]) -> Vec<f32> {
        let mut qkv = qkv.to_vec();
        for row in qkv.chunks_exact_mut(self.width()) {
            let values = &mut row[(self.heads() + self.kv_heads) * self.head_dim..];
            values.iter_mut().for_each(|value| *value = value.abs());
        }
        qkv
    }

    pub fn page_shape(&self) -> PageShape {
        PageShape { layers: 2, kv_heads: self.kv_heads, head_dim: self.head_dim }
    }

    /// Every row's attention, computed in steps of so many rows, on new pages.
    pub fn run<B: Host>(
        &self,
        ops: &B,
        sequences: &Sequences,
        qkv: &[f32],
        steps: &[usize],
    ) -> Vec<f32> {
        let mut pages = ops.pages(self.page_shape(), kept::<B>(), sequences.pages()).unwrap();
        self.run_on(ops, &mut pages, sequences, (qkv, steps))
    }

    fn run_on<B: Host>(
        &self,
        ops: &B,
        pages: &mut B::Pages,
        sequences: &Sequences,
        (qkv, steps): (&[f32], &[usize]),
    ) -> Vec<f32> {
        let page_shape = self.page_shape();
        let shape = AttentionShape {
            heads: self.heads(),
            // So that a row's weights are neither all alike nor one key's alone.
            scale: 1.5 / (self.head_dim as f32).sqrt(),
            window: self.window,
            both_ways: self.both_ways,
        };
        let positions = sequences.limits().positions;
        // Turned by nothing, numbers stay what bf16 holds.
        let rope = ops.rope(&Rotation::by(vec![0.0; self.head_dim / 2]), positions).unwrap();
        let tables = sequences.tables();
        let segments = vec![0; if self.both_ways { sequences.rows() } else { 0 }];
        let mut all = Vec::new();
        let mut start = 0;
        for &count in steps {
            let rows = start..start + count;
            start = rows.end;
            let numbers = &qkv[rows.start * self.width()..rows.end * self.width()];
            let mut qkv = ops.hold(numbers, self.width(), Numbers::Wide);
            let room = |width| ops.buffer(count, width, Numbers::Narrow).unwrap();
            let mut queries = room(self.heads() * self.head_dim.next_multiple_of(32));
            let mut out = room(self.heads() * self.head_dim);
            let mut stage = ops.stage(page_shape, self.heads(), sequences.limits()).unwrap();
            let step = Rows { segments: &segments, ..sequences.step(rows, &tables) };
            ops.compute(step, &[], &mut stage, |step| {
                let to = LayerPages { pages: &mut *pages, layer: 1 };
                ops.rotate_and_store(&mut qkv, &mut queries, None, &rope, step, to);
                let from = LayerPages { pages: &*pages, layer: 1 };
                ops.attention(&queries, shape, step, from, &mut out);
            });
            all.extend(ops.numbers(&out, count, Numbers::Narrow));
        }
        assert_eq!(start, sequences.rows());
        all
    }
}

/// Over every dimension that is compiled, one of which is padded; windows within a chunk and across chunks.
fn cases() -> impl Iterator<Item = Case> {
    let windows = [None, Some(40), Some(300)];
    let dims = [16, 64, 128, 256, 512].into_iter().enumerate();
    dims.flat_map(move |(first, head_dim)| {
        windows.into_iter().enumerate().map(move |(second, window)| Case {
            // Also such as leave a CTA's last queries without a row, and of which a CTA's first begin within one.
            group: [[2, 3, 7], [1, 4, 7], [7, 1, 2], [2, 3, 4], [8, 6, 1]][first][second],
            kv_heads: if head_dim >= 256 { 1 } else { 2 },
            head_dim,
            window,
            both_ways: false,
        })
    })
}

/// Some of them, whose rows see ahead.
fn both_ways() -> impl Iterator<Item = Case> {
    cases().step_by(5).map(|case| Case { both_ways: true, ..case })
}

/// Three chunks of keys, one, less than a page, and no prompt.
fn sequences() -> Sequences {
    Sequences::new(&[560, 130, 23, 2], 3)
}

/// A weight is rounded to bf16 before it multiplies its value, so that a sum moves by at most so much of the weighted
/// mean of the values' magnitudes; the result is rounded once more. The rest is the order of sums in f32.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn attention_is_the_cpus_up_to_the_rounding_of_weights() {
    let (gpu, by_warps) = (gpu(), gpu_without_warpgroups());
    let cpu = Cpu::new(2).unwrap();
    let sequences = sequences();
    for case in cases().chain(both_ways()) {
        let qkv = case.qkv(&sequences);
        let at_once = [sequences.rows()];
        let exact = case.run(&cpu, &sequences, &qkv, &at_once);
        let magnitudes = case.run(&cpu, &sequences, &case.with_magnitudes(&qkv), &at_once);
        let found = case.run(&gpu, &sequences, &qkv, &at_once);
        assert!(bits(&found) == bits(&case.run(&by_warps, &sequences, &qkv, &at_once)), "{case:?}");
        for (index, (found, exact)) in found.iter().zip(&exact).enumerate() {
            let off = HALF_STEP * (magnitudes[index] + exact.abs()) + 2e-5;
            assert!((found - exact).abs() <= off, "{case:?}, {index}: {found}, not {exact}");
        }
    }
}

/// A few rows are attended to chunk by chunk, more in blocks, which other steps cut otherwise.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn decoding_has_the_bits_of_prefill() {
    let by_warps = gpu_without_warpgroups();
    for case in cases() {
        check_steps(&gpu(), &case);
        check_steps(&by_warps, &case);
    }
}

/// Prompts are attended to by warpgroups or by warps, here by the latter.
fn gpu_without_warpgroups() -> Cuda {
    let mut gpu = gpu();
    gpu.room.attention = false;
    gpu
}

fn check_steps(gpu: &Cuda, case: &Case) {
    let sequences = sequences();
    let prompts = sequences.rows() - 11;
    let qkv = case.qkv(&sequences);
    let at_once = case.run(gpu, &sequences, &qkv, &[sequences.rows()]);
    let in_steps = case.run(gpu, &sequences, &qkv, &[301, prompts - 301, 7, 1, 3]);
    assert!(bits(&in_steps) == bits(&at_once), "{case:?}");
    // The last row of the first prompt decodes beside the second.
    let mixed = case.run(gpu, &sequences, &qkv, &[556, prompts - 556, 11]);
    assert!(bits(&mixed) == bits(&at_once), "{case:?}, mixed");
}

/// A page's earlier owner may have overflowed, and have filled it further.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn what_is_no_number_stays_with_its_sequence() {
    let gpu = gpu();
    let sequences = sequences();
    let owners = Sequences::new(&[576, 160, 32, 32], 3);
    assert_eq!(owners.tables(), sequences.tables());
    let steps = [sequences.rows() - 11, 11];
    for case in cases() {
        let qkv = case.qkv(&sequences);
        let alone = case.run(&gpu, &sequences, &qkv, &steps);
        for left in [f32::NAN, f32::INFINITY, 3.4e38] {
            let overflown = vec![left; owners.rows() * case.width()];
            let mut pages = gpu.pages(case.page_shape(), StoredType::Bf16, owners.pages()).unwrap();
            case.run_on(&gpu, &mut pages, &owners, (&overflown, &[owners.rows()]));
            let after = case.run_on(&gpu, &mut pages, &sequences, (&qkv, &steps));
            assert!(bits(&after) == bits(&alone), "{case:?}, after {left}");
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn attention_in_f32_is_the_cpus() {
    let (gpu, cpu) = (gpu_in_f32(), Cpu::new(2).unwrap());
    let sequences = Sequences::new(&[290, 23, 2], 3);
    for case in cases().step_by(5).chain(both_ways()) {
        let qkv = noise(sequences.rows() * case.width(), 1);
        let exact = case.run(&cpu, &sequences, &qkv, &[sequences.rows()]);
        let found = case.run(&gpu, &sequences, &qkv, &[sequences.rows()]);
        let off = 3e-6 * largest(&exact);
        for (index, (found, exact)) in found.iter().zip(&exact).enumerate() {
            assert!((found - exact).abs() <= off, "{case:?}, {index}: {found}, not {exact}");
        }
    }
}

/// Beside a longer text, few rows lie in other blocks.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn texts_that_see_ahead_do_not_depend_on_those_beside_them() {
    for (gpu, window) in [(gpu(), None), (gpu(), Some(12)), (gpu_in_f32(), Some(12))] {
        check_texts(&gpu, window);
    }
}

fn check_texts(gpu: &Cuda, window: Option<usize>) {
    let both = Sequences::new(&[300, 41, 20], 0);
    let case = Case { group: 2, kv_heads: 2, head_dim: 64, window, both_ways: true };
    let qkv = case.qkv(&both);
    let together = case.run(gpu, &both, &qkv, &[361]);
    let alone = case.run(gpu, &Sequences::new(&[41, 20], 0), &qkv[300 * case.width()..], &[61]);
    let width = case.heads() * case.head_dim;
    assert!(bits(&alone) == bits(&together[300 * width..]), "{case:?}");
}
