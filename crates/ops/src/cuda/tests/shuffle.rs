//! Each kernel once more with its threads in random order: one that wants for a barrier gives other bits.

use super::sequences::Sequences;
use super::{Cuda, Host};
use super::{
    KEPT, Numbers, SMALL_PAGES, attention, delta_rule, elements, gpu, gpu_in_f32, is_slow, limits,
    matmul, norm, sampler, text,
};
use crate::Backend;

const SEEDS: [u64; 3] = [0x9E37_79B9_7F4A_7C15, 0xD1B5_4A32_D192_ED03, 12];

fn assert_same<T: PartialEq>(gpu: &Cuda, what: &str, run: impl Fn() -> T) {
    let in_order = run();
    for seed in SEEDS {
        gpu.stream.shuffle(seed);
        assert!(run() == in_order, "{what}, seed {seed}");
    }
    gpu.stream.shuffle(0);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn products_do_not_depend_on_the_order_of_threads() {
    let gpu = gpu();
    for kept in KEPT {
        let layer = matmul::Layer::new(&gpu, (144, 544), kept);
        // Both gates are one kernel.
        for epilogue in &matmul::EPILOGUES[..2] {
            let epilogue = *epilogue;
            for rows in [5, 16, 30, 33, 70, 130] {
                if is_slow(kept) && ![16, 33, 130].contains(&rows) {
                    continue;
                }
                for room in matmul::ROOMS {
                    let what = format!("{kept} {epilogue:?}, {rows} rows on {room:?}");
                    let size = (rows, room);
                    assert_same(&gpu, &what, || layer.multiply_last(&gpu, epilogue, size).1);
                }
                if rows <= 32 {
                    let what = format!("{kept} {epilogue:?}, {rows} rows in waves");
                    assert_same(&gpu, &what, || layer.multiply_in_waves(&gpu, epilogue, rows));
                }
                for cut in matmul::units(&gpu).into_iter().filter(|_| rows > 64) {
                    let what = format!("{kept} {epilogue:?}, {rows} rows, {cut:?}");
                    assert_same(&gpu, &what, || layer.multiply_in_units(&gpu, epilogue, rows, cut));
                }
            }
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn prefill_and_decoding_do_not_depend_on_the_order_of_threads() {
    let gpu = gpu();
    let sequences = Sequences::new(&[290, 40], 3);
    for head_dim in [32, 64, 128, 256] {
        for group in [4, 16] {
            let window = Some(100);
            let case = attention::Case { group, kv_heads: 1, head_dim, window, both_ways: false };
            let qkv = case.qkv(&sequences);
            let steps = [sequences.rows() - 6, 6];
            assert_same(&gpu, &format!("{group} heads of {head_dim}"), || {
                case.run(&gpu, &sequences, &qkv, &steps)
            });
        }
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn the_delta_rule_does_not_depend_on_the_order_of_threads() {
    let gpu = gpu();
    for shape in delta_rule::SHAPES {
        assert_same(&gpu, &format!("{shape:?}"), || delta_rule::run(&gpu, shape));
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn texts_and_products_in_f32_do_not_depend_on_the_order_of_threads() {
    for gpu in [gpu(), gpu_in_f32()] {
        // A row's end lies within what a warp takes at once: the next row's numbers are another CTA's.
        for width in [4, 30, 200] {
            assert_same(&gpu, &format!("texts of {width}"), || text::all(&gpu, width));
        }
    }
    let gpu = gpu_in_f32();
    let sequences = Sequences::new(&[270, 4], 0);
    let window = Some(100);
    let case = attention::Case { group: 2, kv_heads: 1, head_dim: 64, window, both_ways: true };
    let qkv = case.qkv(&sequences);
    assert_same(&gpu, "attention", || case.run(&gpu, &sequences, &qkv, &[274]));
    assert_same(&gpu, "products", || text::products(&gpu, (144, 100), 70));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn norms_and_draws_do_not_depend_on_the_order_of_threads() {
    let gpu = gpu();
    for width in [40, 640, 2560] {
        assert_same(&gpu, &format!("norms of {width}"), || {
            norm::add_norm(&gpu, width, (true, true))
        });
    }
    assert_same(&gpu, "rows that go on", || elements::kept(&gpu, 200, &[0, 7, 8, 9, 199]));
    let vocabulary = 5000;
    let requests = sampler::requests(vocabulary, 0..40);
    let numbers: Vec<f32> = (0..40).flat_map(|row| sampler::logits(vocabulary, row)).collect();
    assert_same(&gpu, "draws", || {
        let mut stage = gpu.stage(SMALL_PAGES, 1, limits(40, 40, 32)).unwrap();
        let mut logits = gpu.hold(&numbers, vocabulary, Numbers::Wide);
        gpu.draw(&mut logits, &requests, &mut stage).unwrap()
    });
    for (rows, most) in [(5, 20), (40, 3)] {
        assert_same(&gpu, "scores", || {
            let [found, expected] = sampler::scores(&gpu, vocabulary, 20..20 + rows, most);
            assert!(format!("{found:?}") == format!("{expected:?}"));
            format!("{found:?}")
        });
    }
}
