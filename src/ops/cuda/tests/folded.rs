//! Kernels that do what two did: the bits of the two.

use super::matmul::{EPILOGUES, Layer};
use super::*;
use crate::ops::Added;
use crate::ops::cuda::kernels::{Epilogue, Product};

const EPSILON: f32 = 1e-6;

/// As many rows as fit beside the weights, of a width.
fn most_rows(gpu: &Cuda, layer: &Layer) -> usize {
    let fits = |rows: &usize| {
        let size =
            Product { rows: *rows, outputs: layer.plain.outputs, inputs: layer.plain.inputs };
        gpu.kernels.matmul_normed(layer.plain.format, Epilogue::Plain, size).is_some()
    };
    (1..=8).rev().find(fits).unwrap()
}

/// What two products leave, each of the norm of a sum, and the residual after both: by one kernel each, or by two.
pub fn products(
    gpu: &Cuda,
    layer: &Layer,
    epilogue: Epilogue,
    (rows, post, is_folded): (usize, bool, bool),
) -> [Vec<f32>; 3] {
    let inputs = layer.plain.inputs;
    let matrix = layer.matrix(epilogue);
    let vector = |seed| gpu.vector(noise(inputs, seed)).unwrap();
    let (post_weight, next) = (post.then(|| vector(3)), vector(4));
    let mut residual = gpu.hold(&noise(rows * inputs, 5), inputs, Numbers::Residual);
    let mut normed = gpu.buffer(rows, inputs, Numbers::Narrow).unwrap();
    let [first, second] = [6, 7].map(|seed| {
        let (post, next) = (post_weight.as_ref(), Some(&next));
        let norms = BranchNorms { post, next, epsilon: EPSILON };
        // The second branch is larger than what it is added to.
        let branch: Vec<f32> =
            noise(rows * inputs, seed).iter().map(|number| number * seed as f32).collect();
        let branch = gpu.hold(&branch, inputs, Numbers::Wide);
        let (_, mut out, kind) = layer.buffers(gpu, epilogue, rows);
        if is_folded {
            let size = Product { rows, outputs: matrix.outputs, inputs };
            let launch = gpu.kernels.matmul_normed(matrix.format, epilogue, size).unwrap();
            let added =
                Added { residual: &mut residual, branch: &branch, norms, normed: &mut normed };
            gpu.launch_folded(launch, added, matrix, &mut out);
        } else {
            gpu.add_norm(&mut residual, &branch, norms, &mut normed);
            gpu.multiply(&normed, matrix, epilogue, &mut out);
        }
        gpu.numbers(&out, rows, kind)
    });
    [first, second, moving(gpu, &residual)]
}

/// The rows of a residual, wherever they lie.
fn moving(gpu: &Cuda, residual: &Buffer) -> Vec<f32> {
    let first = (residual.address() - residual.region.address()) as usize;
    let mut back = gpu.stream.pin(residual.region.bytes()).unwrap();
    gpu.stream.download(&residual.region, &mut back, residual.region.bytes()).unwrap();
    let numbers = back.bytes()[first..][..4 * residual.rows * residual.width].as_chunks::<4>().0;
    numbers.iter().map(|number| f32::from_le_bytes(*number)).collect()
}

/// Widths of less than a warp's share and of the most that a CTA holds; and one whose chunks begin inside of a ring's stages.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn products_of_norms_have_the_bits_of_norms_and_products() {
    let gpu = gpu();
    for shape in [(24, 40), (48, 96), (80, 672), (48, 1152), (24, 2560), (24, 3424), (24, 4096)] {
        for kept in KEPT {
            let layer = Layer::new(&gpu, shape, kept);
            let most = most_rows(&gpu, &layer);
            for (rows, epilogue) in (1..=most).flat_map(|rows| EPILOGUES.map(|each| (rows, each))) {
                for post in [false, true] {
                    let what = format!("{shape:?} {kept} {epilogue:?}, {rows} rows, post {post}");
                    let [one, two] = [true, false]
                        .map(|is_folded| products(&gpu, &layer, epilogue, (rows, post, is_folded)));
                    for (one, two) in one.iter().zip(&two) {
                        assert!(bits(one) == bits(two), "{what}");
                    }
                }
            }
        }
    }
}
