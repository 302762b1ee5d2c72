//! Embeds the files of `prompts/`, `models/`, `datasets/`, `corpora/`, `recipes/` and `systems/`.

use std::path::{Path, PathBuf};

fn main() -> Result<(), String> {
    embed("prompts", "PROMPTS", "txt")?;
    embed("models", "MODELS", "toml")?;
    embed("datasets", "DATASETS", "toml")?;
    embed("corpora", "CORPORA", "toml")?;
    embed("recipes", "RECIPES", "toml")?;
    embed("systems", "SYSTEM_FILES", "toml")?;
    embed("recipes/ids", "IDS", "txt")?;
    embed("recipes/readings", "READINGS", "txt")?;
    embed("recipes/papers", "PAPERS", "txt")?;
    tell_build()
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
#[expect(clippy::disallowed_methods, reason = "where cargo says, in a folder of its own")]
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
