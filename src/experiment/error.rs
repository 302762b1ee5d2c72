//! What can go wrong with a run directory: errors that carry the path, the line and both values.

use std::fmt::Display;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::versions::THIS;
use crate::fault::faults;
use crate::record::SCHEMA;

const RESTORE: &str = "restore the directory from a copy, or run again into another `--out`";
const OTHER_WARDROUND: &str = "read the run with the version of wardround that wrote it, or run it again into another `--out`";

faults! {
    /// An error of a run directory. It is cloned to every caller that waits for the log.
    #[derive(Clone, Debug, thiserror::Error)]
    pub enum RunError {
        #[error("{} exists and is not empty", path.display())]
        NotEmpty { path: PathBuf } => Usage,
            match path.join("plan.toml").exists() || path.join("recipe.toml").exists() {
                true => format!("{}, or choose another `--out`", resume(path)),
                false => "choose another `--out`".to_owned(),
            };
        #[error("{} is not a run directory: it {}", path.display(), if path.exists() { "holds no plan.toml" } else { "does not exist" })]
        NoPlan { path: PathBuf } => Artefact,
            match path.join("cells").is_dir() {
                true => "a recipe's runs are the directories in its `cells`",
                false => "name a directory that `run --out` wrote",
            };
        #[error("{} is missing", path.display())]
        Missing { path: PathBuf } => Artefact, RESTORE;
        #[error("{} is being written by another process", path.display())]
        Busy { path: PathBuf } => Usage, "wait for it to end, or choose another `--out`";
        #[error("{}: {reason}", path.display())]
        Unreadable { path: PathBuf, reason: String } => Artefact, RESTORE;
        #[error("an earlier version of wardround wrote the plan; this one reads its run and cannot repeat it")]
        OlderPlan => Usage,
            "repeat the run with that version, or run it anew";
        #[error("{}: inputs changed since the plan was written: {}", path.display(), differences.join("; "))]
        PlanDiffers { path: PathBuf, differences: Vec<String> } => Artefact,
            "use the files and settings it began with, or choose another `--out`";
        #[error("{}: another version of wardround wrote the plan: {difference}", path.display())]
        OtherVersion { path: PathBuf, difference: String } => Usage,
            "use that version, or repeat the run by `run --plan`: answers may then differ";
        #[error("{} was changed: its sha256 is {found}, {told}", path.display())]
        Changed { path: PathBuf, found: String, told: String } => Artefact, RESTORE;
        #[error("{}, line {line}: {defect}", path.display())]
        BadLine {
            path: PathBuf,
            /// Counted from 1.
            line: usize,
            defect: Defect,
        } => Artefact,
            match defect {
                Defect::Schema { .. } | Defect::Version { .. } => OTHER_WARDROUND,
                _ => RESTORE,
            };
        #[error("{} {lacks}", path.display())]
        Unfinished { path: PathBuf, lacks: String } => Artefact, resume(path);
        #[error("{0}")]
        Unlogged(what: String) => Machine;
        #[error("{0}")]
        Io(error: Arc<io::Error>) => error.blame(), of_files(error);
    }
}

/// What is wrong with one line of a log or of results.json.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    #[error("the line has schema {found}, this version of wardround reads {SCHEMA}")]
    Schema { found: u32 },
    #[error("prev is {found}, the line before has the hash {expected}")]
    Prev { found: String, expected: String },
    #[error("found `{found}` where the logs give `{expected}`")]
    Figure { found: String, expected: String },
    #[error("the figures are of version {found}, which version {THIS} does not know")]
    Version { found: String },
    #[error("{0}")]
    Other(String),
}

impl Defect {
    pub(super) fn no_record(error: &serde_json::Error) -> Defect {
        Defect::Other(format!("the line is not a record: {error}"))
    }
}

impl RunError {
    pub(crate) fn unloggable(what: impl Display, reason: impl Display) -> RunError {
        RunError::Unlogged(format!("{what} would not read back from its own text: {reason}"))
    }
}

/// What to do where a file of a run cannot be read or written.
fn of_files(error: &io::Error) -> Option<String> {
    let is_full = matches!(
        error.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    );
    let hint =
        "every finished call is kept: free some space, then go on with `wardround resume DIR`";
    is_full.then(|| hint.to_owned())
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        RunError::Io(Arc::new(error))
    }
}

/// The command line that resumes the run in `directory`.
pub fn resume(directory: &Path) -> String {
    format!("`wardround resume {}` goes on", directory.display())
}
