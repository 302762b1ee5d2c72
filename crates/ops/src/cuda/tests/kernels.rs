//! What kernels ask of a GPU before they run, and which of them is taken.

use std::process::Command;

use super::super::driver::Stream;
use super::super::kernels::{Epilogue, Kernels, Product};
use super::super::matmul::Matmul;
use super::super::matrix::Format;
use super::super::units;
use super::super::wave::Room;

#[test]
fn kernels_load_where_shared_memory_is_scarce_and_warpgroups_are_none() {
    Kernels::load(&Stream::ada()).unwrap();
    // What the same GPU refuses: the matmuls of Hopper alone.
    let name = "matmul_units_bf16_f32_128";
    assert!(Stream::ada().function(name, units::shared_bytes(128)).is_err());
}

const H100: Room = Room { multiprocessors: 132, units: true, clusters: Some(30), attention: true };

fn taken(kernels: &Kernels, [rows, outputs, inputs]: [usize; 3], room: Room) -> Matmul {
    let size = Product { rows, outputs, inputs };
    kernels.matmul(Format::Bf16, Epilogue::Plain, size, room)
}

/// Qwen3-4B's gates with ups, `down` and `o`: CTAs take tiles of 256 rows and 128 outputs round by round, and chunks of the last.
#[test]
fn products_of_many_rows_are_units() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let cut = |rows, outputs, inputs| match taken(&kernels, [rows, outputs, inputs], H100) {
        Matmul::Units { launch, rows, pieces } => Some((rows, pieces, launch.grid[0])),
        _ => None,
    };
    assert_eq!(cut(2048, 19_456, 2560), Some((256, [1188, 8, 4, 1300], 132)), "28 are split");
    assert_eq!(cut(2048, 2560, 9728), Some((256, [132, 8, 4, 244], 132)), "28 are split");
    assert_eq!(cut(256, 2560, 9728), Some((256, [0, 1, 4, 80], 80)), "all are split");
    assert_eq!(cut(129, 4096, 2560).map(|(.., ctas)| ctas > 1), Some(true), "too many for a wave");
    assert_eq!(cut(128, 2560, 4096), None, "one wave");
}

#[test]
fn without_units_products_of_many_rows_are_by_warps() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let room = Room { units: false, ..H100 };
    let large = taken(&kernels, [2048, 2560, 9728], room);
    assert!(matches!(large, Matmul::Large(_)), "{large:?}");
    let medium = taken(&kernels, [384, 2560, 9728], room);
    assert!(matches!(medium, Matmul::Medium(_)), "60 blocks of 128 rows: {medium:?}");
    let wave = taken(&kernels, [128, 2560, 9728], room);
    assert!(matches!(wave, Matmul::Wave { .. }), "{wave:?}");
}

/// The published sizes of Qwen3-4B and Llama-3.2-3B: few rows are one wave wherever its CTAs run at once.
#[test]
fn products_of_few_rows_are_one_wave() {
    let kernels = Kernels::load(&super::gpu().stream).unwrap();
    let matmul = |rows, outputs| taken(&kernels, [rows, outputs, 2560], H100);
    for rows in [9, 16, 33, 64, 65, 128] {
        for outputs in [2560, 3072, 5120, 6144, 16_384, 19_456] {
            if rows > 64 && outputs == 19_456 {
                let found = matmul(rows, outputs);
                assert!(matches!(found, Matmul::Units { .. }), "no room for all: {found:?}");
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
