//! Synthetic models that a verb makes for itself, kept so that the next time need not.

use std::path::{Path, PathBuf};

use crate::cli::exit::Failure;
use crate::console;
use crate::model::Family;
use crate::synth::{Recipe, Shape, write_checkpoint};

/// Changes whenever a synthetic model of the same seed would come out different.
const MODELS: &str = "1";

/// The checkpoint of `family` and `shape` under `root`; it is made first if it is not there.
///
/// # Errors
/// When the family has no such shape, or a file cannot be written.
pub fn checkpoint(
    root: &Path,
    family: Family,
    shape: Shape,
    quiet: bool,
) -> Result<PathBuf, Failure> {
    let directory = root.join(match shape {
        Shape::Tiny | Shape::Full => format!("{}-{}", shape.name(), family.name()),
        Shape::Qwen3Small => format!("synthetic-{}", shape.name()),
    });
    if !directory.join("config.json").is_file() {
        if !quiet {
            console::note(format!("making {}", directory.display()));
        }
        fs_err::create_dir_all(root)?;
        let recipe = Recipe { family, shape, seed: 1, tokenizer: None };
        write_checkpoint(&recipe, &directory)?;
    }
    Ok(directory)
}

/// A panel of the three families, in the order of the default one.
///
/// # Errors
/// As [`checkpoint`].
pub fn panel(root: &Path, shape: Shape, quiet: bool) -> Result<Vec<String>, Failure> {
    [Family::Gemma3, Family::Llama, Family::Qwen3]
        .into_iter()
        .map(|family| Ok(checkpoint(root, family, shape, quiet)?.display().to_string()))
        .collect()
}

/// Where they are kept unless a flag says otherwise.
pub fn cache_directory() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let name = format!("wardround/synthetic-{}-{MODELS}", env!("CARGO_PKG_VERSION"));
    cache.unwrap_or_else(std::env::temp_dir).join(name)
}
