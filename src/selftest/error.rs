//! What keeps a selftest from saying anything.

use std::path::PathBuf;

use thiserror::Error;

use crate::fault::faults;

const ROOT: &str = "--root names an installed version of a bundle, or a bundle";

faults! {
    #[derive(Debug, Error)]
    pub enum SelftestError {
        #[error("there is no directory at {}", path.display())]
        NoRoot { path: PathBuf } => Artefact, ROOT;
        #[error("{} has no MANIFEST.json", root.display())]
        NoManifest { root: PathBuf } => Artefact, ROOT;
        #[error("{}: {reason}", path.display())]
        Manifest { path: PathBuf, reason: String } => Artefact, "install the bundle again";
        #[error("{} has no models", path.display())]
        NoModels { path: PathBuf } => Artefact, ROOT;
        #[error("there is no directory of golden files at {}", path.display())]
        NoGolden { path: PathBuf } => Usage, "--write-golden writes golden files";
        #[error("{}{}: {reason}", path.display(), line.map_or(String::new(), |line| format!(", line {line}")))]
        Golden {
            path: PathBuf,
            /// From 1; `None` where it is the whole file.
            line: Option<usize>,
            reason: String,
        } => Artefact, "copy the file again from the bundle; --write-golden writes a new one";
        #[error(
            "{} was made for {what} with the sha256 {expected}, and the model here has {found}",
            path.display()
        )]
        OtherModel { path: PathBuf, what: &'static str, expected: String, found: String } => Artefact,
            "compare with the golden file of this model; `wardround models verify` says what its files should be";
        #[error("{} was made by version {version}, which makes other calls", path.display())]
        OtherCalls { path: PathBuf, version: String } => Artefact,
            "use that version, or write a new file with --write-golden";
        #[error(
            "{model} gives other tokens in a batch than alone, so no golden file was written: {difference}"
        )]
        Unrepeatable { model: String, difference: String } => Outcome, "please report this";
        #[error(
            "the selftest found {count} of {checks} checks with files that are missing, corrupt, or of something else"
        )]
        Broken { count: usize, checks: usize } => Artefact, "the lines above say which";
    }
}
