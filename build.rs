//! Compiles `kernels/*.cu`: with nvcc for GPUs (feature `cuda`), or with the C++ compiler for this CPU (feature `twin`).

fn main() {
    println!("cargo::rerun-if-changed=kernels");
    #[cfg(feature = "cuda")]
    compile_for_gpus();
    #[cfg(all(feature = "twin", not(feature = "cuda")))]
    compile_twin();
}

/// The kernels' sources, in order.
#[cfg(any(feature = "cuda", feature = "twin"))]
fn sources() -> Vec<std::path::PathBuf> {
    let files = std::fs::read_dir("kernels").expect("the folder kernels/");
    let mut sources: Vec<_> = files
        .map(|file| file.expect("an entry of kernels/").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    sources.sort();
    sources
}

/// One fat binary a file, each with machine code for every architecture and nothing to compile later.
#[cfg(feature = "cuda")]
fn compile_for_gpus() {
    use std::path::PathBuf;
    use std::process::Command;

    const ARCHITECTURES: [&str; 3] = ["80", "89", "90a"];
    for variable in ["NVCC", "CUDA_HOME", "PATH"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let in_home = std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin/nvcc"));
    let nvcc = std::env::var_os("NVCC").map(PathBuf::from).or(in_home);
    let nvcc = nvcc.unwrap_or_else(|| "nvcc".into());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    let compile = |source: PathBuf| {
        let to = out
            .join(source.file_name().expect("a file"))
            .with_extension("fatbin");
        let mut command = Command::new(&nvcc);
        command.args(["--fatbin", "-O3", "-std=c++20", "--threads", "2"]);
        for architecture in ARCHITECTURES {
            command.arg(format!(
                "-gencode=arch=compute_{architecture},code=sm_{architecture}"
            ));
        }
        let status = command.arg("-o").arg(&to).arg(&source).status();
        match status {
            Ok(status) if status.success() => to,
            Ok(_) => panic!("nvcc refused {}", source.display()),
            Err(error) => panic!(
                "{} cannot be run ({error}): tools/cuda-toolchain.sh sets one up",
                nvcc.display()
            ),
        }
    };
    let fatbins: Vec<String> = sources()
        .into_iter()
        .map(|source| format!("include_bytes!({:?}),\n", compile(source)))
        .collect();
    std::fs::write(out.join("fatbins.rs"), format!("&[{}]", fatbins.concat()))
        .expect("OUT_DIR can be written");
}

/// The twin's kernels enter themselves when the program starts, so all of them are linked.
#[cfg(all(feature = "twin", not(feature = "cuda")))]
fn compile_twin() {
    let mut build = cc::Build::new();
    build
        .cpp(true)
        .std("c++20")
        .opt_level(2)
        .flag("-ffp-contract=off")
        .flag("-Wno-unknown-pragmas")
        .flag("-x")
        .flag("c++")
        .flag("-include")
        .flag("kernels/twin.h")
        .files(sources())
        .file("kernels/twin.cpp")
        .link_lib_modifier("+whole-archive")
        .compile("wardround_twin");
}
