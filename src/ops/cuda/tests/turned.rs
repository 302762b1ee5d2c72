//! Attention that turns its own rows: the bits of the rotary kernel and of attention after it, and the same pages.

use super::sequences::Sequences;
use super::*;
use crate::ops::{AttentionShape, HeadNorms, Unturned};

#[derive(Debug)]
pub struct Case {
    pub heads: usize,
    pub kv_heads: usize,
    pub head_dim: usize,
    pub window: Option<usize>,
    pub has_norms: bool,
}

impl Case {
    fn width(&self) -> usize {
        (self.heads + 2 * self.kv_heads) * self.head_dim
    }

    /// What the rows of each decoding step attend to, and afterwards all keys and values. All prompts are one step; `steps`
    /// says how many rows each of those after it has. With `by_one` those are turned by their attention.
    pub fn decode(
        &self,
        gpu: &Cuda,
        sequences: &Sequences,
        steps: &[usize],
        by_one: bool,
    ) -> Vec<Vec<f32>> {
        let &Case { heads, kv_heads, head_dim, window, has_norms } = self;
        let page_shape = PageShape { layers: 2, kv_heads, head_dim };
        let scale = 1.5 / (head_dim as f32).sqrt();
        let shape = AttentionShape { heads, scale, window, both_ways: false };
        let numbers = noise(sequences.rows() * self.width(), 1);
        let vector = |seed| gpu.vector(noise(head_dim, seed)).unwrap();
        let norms =
            has_norms.then(|| HeadNorms { query: vector(2), key: vector(3), epsilon: 1e-6 });
        let frequencies: Vec<f32> =
            (0..head_dim / 2).map(|pair| 0.8f32.powi(pair as i32)).collect();
        let rope = gpu.rope(&frequencies, sequences.limits().positions).unwrap();
        let mut pages = gpu.pages(page_shape, StoredType::Bf16, sequences.pages()).unwrap();
        let tables = sequences.tables();
        let prompts = sequences.rows() - steps.iter().sum::<usize>();
        let mut found = Vec::new();
        let mut start = 0;
        for (index, count) in [prompts].iter().chain(steps).copied().enumerate() {
            if count == 0 {
                continue;
            }
            let rows = start..start + count;
            start = rows.end;
            let numbers = &numbers[rows.start * self.width()..rows.end * self.width()];
            let mut qkv = gpu.hold(numbers, self.width(), Numbers::Wide);
            let room = |width| gpu.buffer(count, width, Numbers::Narrow).unwrap();
            let mut queries = room(heads * head_dim.next_multiple_of(32));
            let mut out = room(heads * head_dim);
            let mut stage = gpu.stage(page_shape, heads, sequences.limits()).unwrap();
            gpu.compute(sequences.step(rows, &tables), &[], &mut stage, |step| {
                let to = LayerPages { pages: &mut pages, layer: 1 };
                let norms = norms.as_ref();
                if index > 0 && by_one {
                    assert!(step.chunk_slots > 0 && step.are_apart);
                    let unturned =
                        Unturned { qkv: &mut qkv, queries: &mut queries, norms, rope: &rope };
                    gpu.attend_turned(unturned, shape, step, to, &mut out);
                } else {
                    gpu.rotate_and_store(&mut qkv, &mut queries, norms, &rope, step, to);
                    let from = LayerPages { pages: &pages, layer: 1 };
                    gpu.attention(&queries, shape, step, from, &mut out);
                }
            });
            found.push(gpu.numbers(&out, count, Numbers::Narrow));
        }
        let numbers = pages.layer_bytes; // of two layers, two bytes each
        found.extend([&pages.keys, &pages.values].map(|pool| halves(gpu, pool, 0, numbers)));
        found
    }
}

/// Every dimension that is compiled, two of which are padded; groups of one head and of more than a tile's half; windows
/// within a chunk and across chunks.
pub fn cases() -> impl Iterator<Item = Case> {
    let sizes = [
        (16, 3, 1),
        (48, 4, 2),
        (64, 10, 1),
        (64, 2, 2),
        (128, 4, 1),
        (128, 16, 1),
        (256, 2, 1),
        (256, 3, 3),
    ];
    let windows = [None, Some(40), Some(300)];
    sizes.into_iter().enumerate().flat_map(move |(first, (head_dim, heads, kv_heads))| {
        windows.into_iter().enumerate().map(move |(second, window)| Case {
            heads,
            kv_heads,
            head_dim,
            window,
            has_norms: (first + second) % 2 == 0,
        })
    })
}

fn same(gpu: &Cuda, case: &Case, sequences: &Sequences, steps: &[usize]) {
    let [one, two] = [true, false].map(|by_one| case.decode(gpu, sequences, steps, by_one));
    assert_eq!(one.len(), two.len());
    for (index, (one, two)) in one.iter().zip(&two).enumerate() {
        assert!(bits(one) == bits(two), "{case:?}, {index}");
    }
}

/// Own keys at the starts and ends of pages and chunks, and the first of a sequence; alone, and beside others, one of which is
/// of another chunk. Five rows are filled up to a bucket.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn attention_that_turns_its_rows_has_the_bits_of_two_kernels() {
    let gpu = gpu();
    for (index, case) in cases().enumerate() {
        same(&gpu, &case, &Sequences::new(&[1, 1, 32, 33, 64], 1), &[1, 4]);
        // Prompts take long.
        if index % 5 < 3 {
            same(&gpu, &case, &Sequences::new(&[256, 257, 31, 63, 2], 2), &[5, 5]);
            same(&gpu, &case, &Sequences::new(&[514], 3), &[1, 1, 1]);
        }
    }
}

/// Where rows share a sequence, or are those of a prompt, two kernels are taken.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn rows_of_one_sequence_are_turned_before_they_are_attended_to() {
    let gpu = gpu();
    let sequences = Sequences::new(&[40, 20], 2);
    let tables = sequences.tables();
    let page_shape = PageShape { layers: 1, kv_heads: 1, head_dim: 64 };
    let mut stage = gpu.stage(page_shape, 2, sequences.limits()).unwrap();
    let mut apart = Vec::new();
    for rows in [0..56, 54..56, 56..58, 56..60, 57..59] {
        gpu.compute(sequences.step(rows, &tables), &[], &mut stage, |step| {
            apart.push(step.chunk_slots > 0 && step.are_apart);
        });
    }
    assert_eq!(apart, [false, false, true, false, true]);
}
