//! Compiles `kernels/*.cu`: with nvcc for GPUs (feature `cuda`), or with the C++ compiler for this CPU (feature `cuda-emulated`).

#[cfg(any(feature = "cuda", feature = "cuda-emulated"))]
use std::path::PathBuf;

/// A link to the folder at the top of the repository: they are a language of their own.
const KERNELS: &str = "kernels";

fn main() -> Result<(), String> {
    println!("cargo::rerun-if-changed={KERNELS}");
    #[cfg(feature = "cuda")]
    compile_for_gpus()?;
    #[cfg(all(feature = "cuda-emulated", not(feature = "cuda")))]
    compile_emulated()?;
    Ok(())
}

/// The kernels' sources, in order.
#[cfg(any(feature = "cuda", feature = "cuda-emulated"))]
fn sources() -> Result<Vec<PathBuf>, String> {
    let files = std::fs::read_dir(KERNELS).map_err(|error| format!("{KERNELS}: {error}"))?;
    let mut sources: Vec<_> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    sources.sort();
    Ok(sources)
}

/// One fat binary a file, each with machine code for every architecture, and PTX for those that come after Blackwell. A build that
/// one GPU tries may name its own alone: `WARDROUND_CUDA_ARCHITECTURES=90a`.
#[cfg(feature = "cuda")]
#[expect(clippy::disallowed_methods, reason = "where cargo says, in a folder of its own")]
fn compile_for_gpus() -> Result<(), String> {
    use std::process::Command;

    const ARCHITECTURES: &str = "80,89,90a,100,120";
    // Of whose PTX a driver makes code for what has none here.
    const OLDEST_OF_LATER: &str = "100";
    for variable in ["NVCC", "CUDA_HOME", "PATH", "WARDROUND_CUDA_ARCHITECTURES"] {
        println!("cargo::rerun-if-env-changed={variable}");
    }
    let in_home = std::env::var_os("CUDA_HOME").map(|home| PathBuf::from(home).join("bin/nvcc"));
    let nvcc = std::env::var_os("NVCC").map(PathBuf::from).or(in_home);
    let nvcc = nvcc.unwrap_or_else(|| "nvcc".into());
    // A program for one machine alone is built for its architecture alone.
    let asked = std::env::var("WARDROUND_CUDA_ARCHITECTURES").ok();
    let asked = asked.filter(|list| !list.trim().is_empty());
    let architectures = asked.unwrap_or_else(|| ARCHITECTURES.to_owned());
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let mut fatbins = String::from("&[");
    for source in sources()? {
        let name = source.with_extension("fatbin");
        let to = out.join(name.file_name().ok_or("a source without a name")?);
        let mut command = Command::new(&nvcc);
        command.args(["--fatbin", "-O3", "-std=c++20", "--threads", "2"]);
        for architecture in architectures.split(',').map(str::trim) {
            let mut code = format!("sm_{architecture}");
            if architecture == OLDEST_OF_LATER {
                code = format!("[{code},compute_{architecture}]");
            }
            command.arg(format!("-gencode=arch=compute_{architecture},code={code}"));
        }
        match command.arg("-o").arg(&to).arg(&source).status() {
            Ok(status) if status.success() => {}
            Ok(_) => return Err(format!("nvcc refused {}", source.display())),
            Err(error) => {
                let nvcc = nvcc.display();
                return Err(format!(
                    "{nvcc} cannot be run ({error}): tools/cuda-toolchain.sh sets one up"
                ));
            }
        }
        fatbins += &format!("&Aligned(*include_bytes!({to:?})),\n");
    }
    fatbins.push(']');
    let list = out.join("fatbins.rs");
    std::fs::write(&list, fatbins).map_err(|error| format!("{}: {error}", list.display()))
}

/// The emulated kernels enter themselves when the program starts, so all of them are linked.
#[cfg(all(feature = "cuda-emulated", not(feature = "cuda")))]
fn compile_emulated() -> Result<(), String> {
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
        .flag(format!("{KERNELS}/emulator.h"))
        .files(sources()?)
        .file(format!("{KERNELS}/emulator.cpp"))
        .link_lib_modifier("+whole-archive")
        .try_compile("wardround_emulated")
        .map_err(|error| error.to_string())
}
