//! What no caller should do is refused in words, before a kernel reads or writes what is not its own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::{OpsError, Rows};

/// What `work` panics with.
fn complaint(work: impl FnOnce()) -> String {
    let panic = catch_unwind(AssertUnwindSafe(work)).unwrap_err();
    match panic.downcast::<String>() {
        Ok(words) => *words,
        Err(panic) => (*panic.downcast::<&str>().unwrap()).to_owned(),
    }
}

/// A step of so many rows that give so many logits, of sequences with these tables, for a stage of 20, 4 and 64
/// positions.
fn step(gpu: &Cuda, rows: usize, logit_rows: usize, tables: &[&[u32]]) {
    let zeros = vec![0; rows];
    let step = Rows {
        tokens: &zeros,
        positions: &zeros,
        sequences: &zeros,
        segments: &[],
        tables,
        states: &[],
    };
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(20, 4, 64)).unwrap();
    gpu.compute(step, &vec![0; logit_rows], &mut stage, |_| {});
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn a_step_has_to_fit_its_stage() {
    let gpu = gpu();
    let table: &[u32] = &[0, 1];
    step(&gpu, 20, 4, &[table; 4]);
    for (rows, logit_rows) in [(33, 1), (70, 1), (20, 5)] {
        let words = complaint(|| step(&gpu, rows, logit_rows, &[table]));
        assert!(words.contains("more rows than its stage"), "{words}");
    }
    for tables in [&[table; 5][..], &[&[0, 1, 2]]] {
        let words = complaint(|| step(&gpu, 1, 1, tables));
        assert!(words.contains("more sequences, or longer ones"), "{words}");
    }
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn rows_have_to_fit_their_buffer() {
    let gpu = gpu();
    let x = gpu.hold(&noise(40 * 32, 1), 32, Numbers::Wide);
    let weight = gpu.vector(noise(32, 2)).unwrap();
    let mut out = gpu.buffer(20, 32, Numbers::Narrow).unwrap();
    let words = complaint(|| gpu.rms_norm(&x, &weight, 1e-6, &mut out));
    assert_eq!(words, "40 rows for a buffer of 32");
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn draws_have_to_fit_their_drawer() {
    let gpu = gpu();
    let mut stage = gpu.stage(SMALL_PAGES, 1, limits(4, 4, 32)).unwrap();
    let mut logits = gpu.hold(&noise(4 * 50, 1), 50, Numbers::Wide);
    let requests = vec![None; 17];
    let words = complaint(|| {
        let _ = gpu.draw(&mut logits, &requests, &mut stage);
    });
    assert!(words.contains("more draws than the drawer"), "{words}");
}

#[test]
#[cfg_attr(feature = "cuda", ignore = "needs a GPU")]
fn heads_that_no_kernel_takes_are_an_error() {
    let gpu = gpu();
    for (head_dim, heads, kv_heads) in [(96, 4, 2), (544, 1, 1), (64, 17, 1)] {
        let shape = PageShape { head_dim, kv_heads, ..SMALL_PAGES };
        let error = gpu.stage(shape, heads, limits(1, 1, 32)).unwrap_err();
        let words = error.to_string();
        let expected = format!("{heads} heads of {head_dim} numbers over {kv_heads} of keys");
        assert!(matches!(error, OpsError::Device { .. }) && words.contains(&expected), "{words}");
    }
}

#[test]
fn a_gpu_that_is_not_there_is_an_error() {
    let error = Cuda::open(1000).unwrap_err();
    assert!(matches!(error, OpsError::NoDevice { .. }), "{error}");
    assert!(error.to_string().contains("cuda:1000"), "{error}");
}
