//! What kernels ask of a GPU before they run, and which of them is taken.

use std::process::Command;

use super::super::driver::Stream;
use super::super::kernels::{Epilogue, Kernels, Product};
use super::super::matmul::Matmul;
use super::super::matrix::Format;
use super::super::wave::Room;

#[test]
fn kernels_load_where_shared_memory_is_scarce_and_warpgroups_are_none() {
    Kernels::load(&Stream::ada()).unwrap();
    // What the same GPU refuses: the warpgroups' own matmuls.
    let name = "matmul_warpgroup_bf16_f32_128";
    assert!(Stream::ada().function(name, 163_840).is_err());
}

/// Qwen3-4B's largest product is bound by the second cache in blocks of 128 rows; small ones fill the GPU with them; and
/// those of few outputs, which would leave it half empty, are split along their inputs.
#[test]
fn products_of_many_rows_take_the_faster_rounds() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let room = Room { multiprocessors: 132, warpgroups: true, units: false, clusters: Some(32) };
    // Rows of a CTA, and blocks of outputs that are whole and split.
    let cut = |rows: usize, outputs: usize, inputs: usize| {
        let size = Product { rows, outputs, inputs };
        match kernels.matmul(Format::Bf16, Epilogue::Plain, size, room) {
            Matmul::Warpgroups { whole, split, .. } => {
                let [x, y, _] = split.grid;
                Some((rows.div_ceil(x / split.cluster), whole.grid[1], y))
            }
            _ => None,
        }
    };
    assert_eq!(cut(2048, 19_456, 2560), Some((256, 148, 4)), "nine rounds, and a short one");
    assert_eq!(cut(2048, 6144, 2560), Some((256, 48, 0)), "three rounds");
    assert_eq!(cut(512, 4096, 2560), Some((128, 32, 0)), "a round either way");
    assert_eq!(cut(2048, 2560, 9728), Some((256, 16, 4)), "a round, and a short one");
    assert_eq!(cut(384, 2560, 9728), Some((128, 0, 20)), "60 blocks fill half of the GPU");
    assert_eq!(cut(64, 19_456, 2560), None, "one wave");
}

/// The published sizes of Qwen3-4B and Llama-3.2-3B: few rows are one wave wherever its CTAs run at once.
#[test]
fn products_of_few_rows_are_one_wave() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let room = Room { multiprocessors: 132, warpgroups: true, units: false, clusters: Some(30) };
    let matmul = |rows, outputs| {
        let size = Product { rows, outputs, inputs: 2560 };
        kernels.matmul(Format::Bf16, Epilogue::Plain, size, room)
    };
    for rows in [9, 16, 33, 64, 65, 128] {
        for outputs in [2560, 3072, 5120, 6144, 16_384, 19_456] {
            if rows > 64 && outputs == 19_456 {
                let found = matmul(rows, outputs);
                assert!(matches!(found, Matmul::Warpgroups { .. }), "no room for all: {found:?}");
                continue;
            }
            let Matmul::Wave { launch, .. } = matmul(rows, outputs) else {
                panic!("{rows} rows, {outputs} outputs: {:?}", matmul(rows, outputs));
            };
            let ctas: usize = launch.grid.iter().product();
            assert!((60..=480).contains(&ctas), "{rows} rows, {outputs} outputs: {launch:?}");
            assert!(launch.shared_bytes <= 232_448, "{launch:?}");
        }
    }
    assert!(matches!(matmul(64, 151_936), Matmul::Medium(_)), "many rounds");
    assert!(matches!(matmul(8, 151_936), Matmul::Small(_)), "many rounds");
    assert!(matches!(matmul(8, 2560), Matmul::Small(_)), "small CTAs are faster");
}

/// The compiler, which refuses arithmetic of floats beside the intrinsics.
fn is_refused(kernels: &str) -> bool {
    let compiler = std::env::var_os("CXX").unwrap_or_else(|| "c++".into());
    let check = "-x c++ -std=c++20 -fsyntax-only -Wno-unknown-pragmas -I kernels -include kernels/emulator_checks.h";
    !Command::new(compiler).args(check.split(' ')).arg(kernels).output().unwrap().status.success()
}

#[test]
fn kernels_compute_by_intrinsics_that_nothing_is_contracted_of() {
    for name in [
        "attention",
        "attention_f32",
        "delta_rule",
        "elements",
        "encoder",
        "matmul",
        "matmul_f32",
        "norm",
        "rotary",
    ] {
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
