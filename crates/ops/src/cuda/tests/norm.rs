//! Root-mean-square norms over rows, against the CPU's.

use super::*;
use crate::Rows;

/// Narrower than a warp's share, and up to several passes of a CTA.
const WIDTHS: [usize; 5] = [8, 40, 640, 1152, 2560];
const EPSILON: f32 = 1e-6;

/// Rows of very different size.
fn inputs(rows: usize, width: usize, seed: u64) -> Vec<f32> {
    let mut numbers = noise(rows * width, seed);
    for (row, numbers) in numbers.chunks_exact_mut(width).enumerate() {
        let size = [1.0, 1e-3, 300.0][row % 3];
        numbers.iter_mut().for_each(|number| *number *= size);
    }
    numbers
}

/// Row by row, for rows differ in size.
fn assert_rows_rounded(found: &[f32], exact: &[f32], width: usize, what: &str) {
    assert_eq!(found.len(), exact.len(), "{what}");
    let rows = found.chunks_exact(width).zip(exact.chunks_exact(width));
    rows.for_each(|(found, exact)| assert_rounded(found, exact, what));
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn rms_norm_is_the_cpus() {
    fn run<B: Host>(ops: &B, width: usize) -> Vec<f32> {
        let x = ops.hold(&inputs(7, width, 1), width, Numbers::Wide);
        let weight = ops.vector(noise(width, 2)).unwrap();
        let mut out = ops.buffer(7, width, Numbers::Narrow).unwrap();
        ops.rms_norm(&x, &weight, EPSILON, &mut out);
        ops.numbers(&out, 7, Numbers::Narrow)
    }
    let gpu = gpu();
    let cpu = Cpu::new(1).unwrap();
    for width in WIDTHS {
        let (found, exact) = (run(&gpu, width), run(&cpu, width));
        assert_rows_rounded(&found, &exact, width, &format!("width {width}"));
    }
}

/// The residual and its norm.
pub fn add_norm<B: Host>(ops: &B, width: usize, (post, next): (bool, bool)) -> [Vec<f32>; 2] {
    let mut residual = ops.hold(&inputs(7, width, 1), width, Numbers::Wide);
    let branch = ops.hold(&inputs(7, width, 2), width, Numbers::Wide);
    let vector = |seed| ops.vector(noise(width, seed)).unwrap();
    let [post, next] =
        [(post, 3), (next, 4)].map(|(is_there, seed)| is_there.then(|| vector(seed)));
    let mut normed = ops.hold(&vec![0.0; 7 * width], width, Numbers::Narrow);
    let norms =
        BranchNorms { post: post.as_ref(), scale: 0.7, next: next.as_ref(), epsilon: EPSILON };
    ops.add_norm(&mut residual, &branch, norms, &mut normed);
    [(&residual, Numbers::Wide), (&normed, Numbers::Narrow)]
        .map(|(buffer, kind)| ops.numbers(buffer, 7, kind))
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn a_branch_is_added_and_the_sum_is_normed() {
    let gpu = gpu();
    let cpu = Cpu::new(1).unwrap();
    for width in WIDTHS {
        for norms @ (post, next) in [(false, true), (true, true), (true, false), (false, false)] {
            let what = format!("width {width}, post {post}, next {next}");
            let [residual, normed] = add_norm(&gpu, width, norms);
            let [exact_residual, exact_normed] = add_norm(&cpu, width, norms);
            if post {
                let rows = residual.chunks_exact(width);
                for (found, exact) in rows.zip(exact_residual.chunks_exact(width)) {
                    let reordering = 1e-6 * largest(exact);
                    let mut pairs = found.iter().zip(exact);
                    assert!(
                        pairs.all(|(found, exact)| (found - exact).abs() <= reordering),
                        "{what}"
                    );
                }
            } else {
                assert!(residual == exact_residual, "{what}");
            }
            if next {
                assert_rows_rounded(&normed, &exact_normed, width, &what);
            } else {
                assert_eq!(largest(&normed), 0.0, "{what}");
            }
        }
    }
}

/// Few rows are a decoding step, whose rows of logits are filled up to a bucket.
#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn the_rows_that_give_logits_are_gathered() {
    fn run<B: Host>(ops: &B, rows: usize, logit_rows: &[usize], read: usize) -> Vec<f32> {
        let width = 96;
        let numbers = vec![0; rows];
        let step = Rows {
            tokens: &numbers,
            positions: &numbers,
            sequences: &numbers,
            segments: &[],
            tables: &[&[0]],
            states: &[],
        };
        let x = ops.hold(&inputs(rows, width, 1), width, Numbers::Wide);
        let weight = ops.vector(noise(width, 2)).unwrap();
        let mut out = ops.hold(&vec![1.0; 16 * width], width, Numbers::Narrow);
        let mut stage = ops.stage(SMALL_PAGES, 1, limits(rows, 16, 32)).unwrap();
        ops.compute(step, logit_rows, &mut stage, |step| {
            ops.gather_norm(&x, step, &weight, EPSILON, &mut out);
        });
        ops.numbers(&out, read, Numbers::Narrow)
    }
    let gpu = gpu();
    let cpu = Cpu::new(1).unwrap();
    for (rows, logit_rows) in [(9, &[8, 0, 3][..]), (1, &[0][..]), (70, &[69, 1, 0, 33, 2][..])] {
        let count = logit_rows.len();
        let found = run(&gpu, rows, logit_rows, count);
        let exact = run(&cpu, rows, logit_rows, count);
        assert_rows_rounded(&found, &exact, 96, &format!("{rows} rows"));
    }
    let padded = run(&gpu, 9, &[8, 0, 3], 4);
    assert_eq!(largest(&padded[3 * 96..]), 0.0);
}
