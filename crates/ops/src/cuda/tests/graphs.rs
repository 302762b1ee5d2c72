//! Decoding steps kept as graphs: the same bits, also where the driver refuses to keep one.

use super::attention::Case;
use super::sequences::Sequences;
use super::*;
use crate::AttentionShape;

const CASE: Case = Case { group: 2, kv_heads: 1, head_dim: 32, window: None, both_ways: false };
const TURNS: usize = 4;

/// Every row's attention: the prompts in a step, then a row of each sequence in turns, all in the same stage and buffers.
fn decode(gpu: &Cuda, sequences: &Sequences, count: usize) -> Vec<f32> {
    let qkv_numbers = CASE.qkv(sequences);
    let tables = sequences.tables();
    let shape = AttentionShape { heads: CASE.heads(), scale: 0.25, window: None, both_ways: false };
    let mut pages = gpu.pages(CASE.page_shape(), StoredType::Bf16, sequences.pages()).unwrap();
    let rope = gpu.rope(&Rotation::by(vec![0.0; 16]), sequences.limits().positions).unwrap();
    let mut stage = gpu.stage(CASE.page_shape(), CASE.heads(), sequences.limits()).unwrap();
    let prompts = sequences.rows() - TURNS * count;
    let room = |width, kind| gpu.buffer(prompts, width, kind).unwrap();
    let mut qkv = room(CASE.width(), Numbers::Wide);
    let mut queries = room(CASE.heads() * 32, Numbers::Narrow);
    let mut out = room(CASE.heads() * 32, Numbers::Narrow);
    let mut all = Vec::new();
    let mut start = 0;
    for rows in [&[prompts][..], &[count; TURNS]].concat() {
        let numbers = &qkv_numbers[start * CASE.width()..(start + rows) * CASE.width()];
        gpu.stream.write(&qkv.region, 0, &bytes(numbers));
        let step = sequences.step(start..start + rows, &tables);
        gpu.compute(step, &[], &mut stage, |step| {
            let to = LayerPages { pages: &mut pages, layer: 1 };
            gpu.rotate_and_store(&mut qkv, &mut queries, None, &rope, step, to);
            let from = LayerPages { pages: &pages, layer: 1 };
            gpu.attention(&queries, shape, step, from, &mut out);
        });
        all.extend(gpu.numbers(&out, rows, Numbers::Narrow));
        start += rows;
    }
    all
}

/// One of up to 64 rows, and one of more, each of a sequence of its own.
#[test]
fn graphs_have_the_bits_of_launches_one_by_one() {
    for count in [5, 100] {
        let sequences = Sequences::new(&vec![9; count], TURNS);
        let gpu = gpu();
        let kept = decode(&gpu, &sequences, count);
        assert_eq!(gpu.stream.replays(), TURNS - 1, "all turns but the first, {count} rows");
        gpu.stream.refuse_recording(true);
        let one_by_one = decode(&gpu, &sequences, count);
        assert_eq!(gpu.stream.replays(), TURNS - 1, "none more");
        assert!(bits(&kept) == bits(&one_by_one), "{count} rows");
    }
}

/// Rows of one sequence share what they read.
#[test]
fn rows_of_one_sequence_are_no_decoding_step() {
    let gpu = gpu();
    let sequences = Sequences::new(&[100], 0);
    let tables = sequences.tables();
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(128, 64, 128)).unwrap();
    let mut decoding = Vec::new();
    for rows in [64, 65] {
        gpu.compute(sequences.step(0..rows, &tables), &[], &mut stage, |step| {
            decoding.push(step.decoding);
        });
    }
    assert_eq!(decoding, [64, 0]);
}
