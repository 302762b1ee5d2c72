//! Waves of CTAs in place of small ones: the bits of the small ones, whichever way they are cut.

use super::matmul::{EPILOGUES, Layer, ROOMS, SHAPES};
use super::*;
use crate::cuda::matmul::Matmul;

/// Up to what each of the small matmuls takes at most.
const FEW_ROWS: [usize; 10] = [1, 3, 5, 8, 9, 13, 16, 17, 24, 32];
/// Of them where products are emulated and weights quantised.
const FEWER_ROWS: [usize; 4] = [8, 13, 17, 32];

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn waves_of_few_rows_of_bf16_have_the_bits_of_small_products() {
    compare_waves(Quantisation::None);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn waves_of_few_rows_of_q8_0_have_the_bits_of_small_products() {
    compare_waves(Quantisation::Q8_0);
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn waves_of_few_rows_of_q4_k_have_the_bits_of_small_products() {
    compare_waves(Quantisation::Q4K);
}

fn compare_waves(kept: Quantisation) {
    let gpu = gpu();
    if gpu.stream.most_clustered() < 4 {
        return;
    }
    for shape in SHAPES.into_iter().chain([(80, 1152)]) {
        let layer = Layer::new(&gpu, shape, kept);
        for (epilogue, rows) in
            EPILOGUES.into_iter().flat_map(|each| FEW_ROWS.map(|rows| (each, rows)))
        {
            if is_slow(kept) && !FEWER_ROWS.contains(&rows) {
                continue;
            }
            let (matmul, small) = layer.multiply_last(&gpu, epilogue, (rows, ROOMS[0]));
            assert!(matches!(matmul, Matmul::Small(_)), "{matmul:?}");
            for (wave, found) in layer.multiply_in_waves(&gpu, epilogue, rows) {
                let what = format!("{kept} {shape:?} {epilogue:?}, {rows} rows, {wave}");
                assert!(bits(&found) == bits(&small), "{what}");
            }
        }
    }
}
