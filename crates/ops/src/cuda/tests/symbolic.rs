//! Single kernels by hashes of how numbers were made in place of numbers (kernels/emulator_hashes.h): products and attention in every company; and
//! that kernels compute by nothing else than what there are hashes of.

use std::process::Command;

use super::matmul::{SHAPES, check_company};
use super::*;
use crate::cuda::Like;

/// As an H200.
fn symbolic(turns: u64) -> Cuda {
    Cuda::symbolic(Like { multiprocessors: 132, warpgroups: true, clusters: true, turns }).unwrap()
}

fn in_f32() -> Cuda {
    symbolic(0).for_encoder(StoredType::F32.into()).unwrap()
}

#[test]
fn products_are_made_alike_by_every_kernel() {
    let all = std::env::var_os("WARDROUND_ALL_SHAPES").is_some();
    for kept in KEPT {
        let met = check_company(&symbolic(0), kept, if all { &SHAPES } else { &SHAPES[1..2] });
        assert!(met.len() >= 6, "{met:?}");
    }
    check_company(&symbolic(3), Quantisation::None, &SHAPES[3..4]);
    assert!(symbolic(0).warpgroups_agree().unwrap());
    text::check_rows(&in_f32(), (272, 100));
}

#[test]
fn attention_is_made_alike_in_every_step() {
    attention::cases()
        .enumerate()
        .filter(|(index, _)| index % 5 == 1)
        .for_each(|(_, case)| attention::check_steps(&symbolic(3), &case));
    attention::check_texts(&symbolic(0), Some(12));
    attention::check_texts(&in_f32(), None);
}

/// The compiler, which refuses arithmetic of floats beside the intrinsics.
fn is_refused(kernels: &str) -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let check = "-x c++ -std=c++20 -fsyntax-only -Wno-unknown-pragmas -I kernels -include kernels/emulator_checks.h";
    !Command::new(compiler).args(check.split(' ')).arg(kernels).output().unwrap().status.success()
}

#[test]
fn kernels_compute_by_what_there_are_hashes_of() {
    for name in ["attention", "attention_f32", "encoder", "matmul", "matmul_f32", "norm", "rotary"]
    {
        assert!(!is_refused(&format!("kernels/{name}.cu")), "{name}");
    }
    let folder = tempfile::tempdir().unwrap();
    for (body, refused) in [
        ("x[0] = __fadd_rn(x[1], x[2]);", false),
        ("x[0] = x[1] + x[2];", true),
        ("x[0] += x[1];", true),
    ] {
        let path = folder.path().join("tried.cu");
        let text = format!(
            "#include \"common.cuh\"\nextern \"C\" __global__ void tried(float *x) {{ {body} }}\n"
        );
        std::fs::write(&path, text).unwrap();
        assert_eq!(is_refused(&path.to_string_lossy()), refused, "{body}");
    }
}
