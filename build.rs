//! Embeds the files of `prompts/`, `models/`, `datasets/`, `corpora/` and `recipes/`, and compiles `kernels/*.cu`: with nvcc for GPUs (feature `cuda`), or
//! with the C++ compiler for this CPU (feature `cuda-emulated`).

use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    embed("prompts", "PROMPTS", "txt")?;
    embed("models", "MODELS", "toml")?;
    embed("datasets", "DATASETS", "toml")?;
    embed("corpora", "CORPORA", "toml")?;
    embed("recipes", "RECIPES", "toml")?;
    embed("recipes/ids", "IDS", "txt")?;
    embed("recipes/readings", "READINGS", "txt")?;
    println!("cargo::rerun-if-changed=kernels");
    tell_build()?;
    #[cfg(feature = "cuda")]
    compile_for_gpus()?;
    #[cfg(feature = "cuda-emulated")]
    compile_emulated()?;
    Ok(())
}

/// What bundles say of the build: compiler, target and profile, and the commit where WARDROUND_COMMIT names it. No clock, host or path.
fn tell_build() -> Result<(), String> {
    let variable = |name: &str| std::env::var(name).map_err(|error| format!("{name}: {error}"));
    let rustc = std::process::Command::new(variable("RUSTC")?).arg("-V").output();
    let rustc = rustc.map_err(|error| format!("rustc -V: {error}"))?.stdout;
    println!("cargo::rustc-env=WARDROUND_RUSTC={}", String::from_utf8_lossy(&rustc).trim());
    println!("cargo::rustc-env=WARDROUND_TARGET={}", variable("TARGET")?);
    println!("cargo::rustc-env=WARDROUND_PROFILE={}", variable("PROFILE")?);
    for name in ["WARDROUND_COMMIT", "SOURCE_DATE_EPOCH"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
    Ok(())
}

/// Writes a file named after `constant`: a constant that lists every file below `folder` with this extension, as its path inside `folder`,
/// with `/` between the parts, and its text.
fn embed(folder: &str, constant: &str, extension: &str) -> Result<(), String> {
    println!("cargo::rerun-if-changed={folder}");
    let mut files = Vec::new();
    let root = std::path::absolute(folder).map_err(|error| format!("{folder}: {error}"))?;
    find(&root, &mut files)?;
    let mut named = Vec::new();
    for path in files {
        if path.extension().is_some_and(|found| found == extension) {
            let inside = path.strip_prefix(&root).map_err(|error| error.to_string())?;
            let parts = inside.iter().map(|part| part.to_string_lossy());
            named.push((parts.collect::<Vec<_>>().join("/"), path));
        }
    }
    named.sort();
    let mut list = format!("const {constant}: &[(&str, &str)] = &[\n");
    for (name, path) in named {
        list += &format!("    ({name:?}, include_str!({path:?})),\n");
    }
    list += "];\n";
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("cargo sets OUT_DIR")?);
    let to = out.join(constant.to_lowercase()).with_extension("rs");
    std::fs::write(&to, list).map_err(|error| format!("{}: {error}", to.display()))
}

/// Every file below a folder.
fn find(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("{}: {error}", folder.display());
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.is_dir() {
            true => find(&path, files)?,
            false => files.push(path),
        }
    }
    Ok(())
}

/// The kernels' sources, in order.
#[cfg(any(feature = "cuda", feature = "cuda-emulated"))]
fn sources() -> Result<Vec<PathBuf>, String> {
    let files = std::fs::read_dir("kernels").map_err(|error| format!("kernels/: {error}"))?;
    let mut sources: Vec<_> = files
        .filter_map(|file| Some(file.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "cu"))
        .collect();
    sources.sort();
    Ok(sources)
}

/// One fat binary a file, each with machine code for every architecture and nothing to compile later. A build that one GPU
/// tries may name its own alone: `WARDROUND_CUDA_ARCHITECTURES=90a`.
#[cfg(feature = "cuda")]
fn compile_for_gpus() -> Result<(), String> {
    use std::process::Command;

    const ARCHITECTURES: &str = "80,89,90a";
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
            command.arg(format!("-gencode=arch=compute_{architecture},code=sm_{architecture}"));
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
#[cfg(feature = "cuda-emulated")]
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
        .flag("kernels/emulator.h")
        .files(sources()?)
        .file("kernels/emulator.cpp")
        .link_lib_modifier("+whole-archive")
        .try_compile("wardround_emulated")
        .map_err(|error| error.to_string())
}
