//! What keeps a selftest from saying anything.

use std::path::PathBuf;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};

#[derive(Debug, Error)]
pub enum SelftestError {
    #[error("there is no directory at {}", path.display())]
    NoRoot { path: PathBuf },
    #[error("{} has no MANIFEST.json", root.display())]
    NoManifest { root: PathBuf },
    #[error("{}: {reason}", path.display())]
    Manifest { path: PathBuf, reason: String },
    #[error("{} has no models", path.display())]
    NoModels { path: PathBuf },
    #[error("there is no directory of golden files at {}", path.display())]
    NoGolden { path: PathBuf },
    #[error("{}{}: {reason}", path.display(), line.map_or(String::new(), |line| format!(", line {line}")))]
    Golden {
        path: PathBuf,
        /// From 1; `None` where it is the whole file.
        line: Option<usize>,
        reason: String,
    },
    #[error(
        "{} was made for {what} with the sha256 {expected}, and the model here has {found}",
        path.display()
    )]
    OtherModel { path: PathBuf, what: &'static str, expected: String, found: String },
    #[error("{} was made by version {version}, which makes other calls", path.display())]
    OtherCalls { path: PathBuf, version: String },
    #[error(
        "{model} gives other tokens in a batch than alone, so no golden file was written: {difference}"
    )]
    Unrepeatable { model: String, difference: String },
    #[error(
        "the selftest found {count} of {checks} checks with files that are missing, corrupt, or of something else"
    )]
    Broken { count: usize, checks: usize },
}

impl Diagnosis for SelftestError {
    fn blame(&self) -> Blame {
        match self {
            SelftestError::NoGolden { .. } => Blame::Usage,
            SelftestError::Unrepeatable { .. } => Blame::Outcome,
            _ => Blame::Artefact,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            SelftestError::NoRoot { .. }
            | SelftestError::NoManifest { .. }
            | SelftestError::NoModels { .. } => {
                "--root names an installed version of a bundle, or a bundle"
            }
            SelftestError::Manifest { .. } => "install the bundle again",
            SelftestError::NoGolden { .. } => "--write-golden writes golden files",
            SelftestError::Golden { .. } => {
                "copy the file again from the bundle; --write-golden writes a new one"
            }
            SelftestError::OtherModel { .. } => {
                "compare with the golden file of this model; `wardround models verify` says what its files should be"
            }
            SelftestError::OtherCalls { .. } => {
                "use that version, or write a new file with --write-golden"
            }
            SelftestError::Unrepeatable { .. } => "please report this",
            SelftestError::Broken { .. } => "the lines above say which",
        };
        Some(hint.to_owned())
    }
}
