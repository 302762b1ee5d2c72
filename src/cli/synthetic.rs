//! Synthetic models that commands make for themselves and cache.

use std::path::{Path, PathBuf};

use clap::Args;

use crate::cli::exit::Failure;
use crate::cli::options::QuietFlag;
use crate::model::Family;
use crate::synth::{Recipe, Shape, write_checkpoint};

/// Must change whenever a synthetic model of the same seed changes.
const MODELS: &str = "1";

/// The directory of synthetic models.
#[derive(Clone, Debug, Default, Args)]
pub struct SyntheticModels {
    /// Directory of synthetic models [default: the user's cache]
    #[arg(long = "models", env = "WARDROUND_SYNTH_MODELS", value_name = "DIR")]
    directory: Option<PathBuf>,
}

impl SyntheticModels {
    /// The directory that was given.
    pub fn given(&self) -> Option<&Path> {
        self.directory.as_deref()
    }

    /// The directory of all of them.
    pub fn root(&self) -> PathBuf {
        self.directory.clone().unwrap_or_else(cache_directory)
    }

    /// A tiny panel of the three families, in the order of the default panel. A model that does not exist is made.
    pub fn panel(&self, progress: QuietFlag) -> Result<Vec<String>, Failure> {
        let member = |family: Family| {
            let root = self.root();
            let directory = root.join(format!("tiny-{}", family.name()));
            if !directory.join("config.json").is_file() {
                progress.note(format!("making {}", directory.display()));
                fs_err::create_dir_all(root)?;
                let recipe = Recipe { family, shape: Shape::Tiny, seed: 1, tokenizer: None };
                write_checkpoint(&recipe, &directory)?;
            }
            Ok(directory.display().to_string())
        };
        Family::ALL.into_iter().map(member).collect()
    }
}

fn cache_directory() -> PathBuf {
    let home = || std::env::var_os("HOME").map(|home| Path::new(&home).join(".cache"));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).or_else(home);
    let name = format!("wardround/synthetic-{}-{MODELS}", env!("CARGO_PKG_VERSION"));
    cache.unwrap_or_else(std::env::temp_dir).join(name)
}
