//! What can go wrong with a run directory: errors that carry the path, the line and both values.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::versions::THIS;
use crate::diagnosis::{Blame, Diagnosis};
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
            "go on with `wardround resume DIR`, or choose another `--out`";
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
        #[error("{} is not a plan: {reason}", path.display())]
        UnreadablePlan { path: PathBuf, reason: String } => Artefact;
        #[error("{}: {reason}", path.display())]
        Unreadable { path: PathBuf, reason: String } => Artefact, RESTORE;
        #[error("the plan cannot be written as TOML: {reason}")]
        UnwritablePlan { reason: String } => Usage;
        #[error("an earlier version of wardround wrote the plan; this one reads its run and cannot repeat it")]
        OlderPlan => Usage,
            "repeat the run with that version, or run it anew";
        #[error("{}: inputs changed since the plan was written: {}", path.display(), differences.join("; "))]
        PlanDiffers { path: PathBuf, differences: Vec<String> } => Artefact,
            "use the files and settings it began with, or choose another `--out`";
        #[error("{}: another version of wardround wrote the plan: {difference}", path.display())]
        OtherVersion { path: PathBuf, difference: String } => Usage,
            "use that version, or give --allow-version: answers may then differ";
        #[error(
            "{} was changed: its sha256 is {found}, line 1 of {} was chained to {expected}",
            path.display(),
            log.display()
        )]
        PlanChanged { path: PathBuf, log: PathBuf, expected: String, found: String } => Artefact, RESTORE;
        #[error("{} was changed: its sha256 is {found}, plan.toml says {expected}", path.display())]
        TextsChanged { path: PathBuf, found: String, expected: String } => Artefact, RESTORE;
        #[error("{} has schema {found}, this version of wardround reads {SCHEMA}", path.display())]
        Schema { path: PathBuf, found: u32 } => Artefact,
            OTHER_WARDROUND;
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
        #[error("{}: no head of this run is {expected}", path.display())]
        HeadDiffers { path: PathBuf, expected: String } => Artefact, RESTORE;
        #[error("{}: {missing} of the planned items have no line, the first of them {first}", path.display())]
        Unfinished { path: PathBuf, missing: usize, first: String } => Artefact,
            "finish the run with `wardround resume DIR`";
        #[error("{} has not finished", path.display())]
        NoResults { path: PathBuf } => Artefact, "finish the run with `wardround resume DIR`";
        #[error("{what} is logged already")]
        AlreadyLogged { what: String } => Machine;
        #[error("{what} would not read back from its own JSON: {reason}")]
        Unloggable { what: String, reason: String } => Machine;
        #[error("{what}: the plan names no corpus")]
        NoSearches { what: String } => Machine;
        #[error("the log of this run is closed")]
        LogClosed => Machine;
        #[error("{0}")]
        Io(error: Arc<io::Error>) => error.blame(), of_files(error);
    }
}

/// What is wrong with one line of a log or of results.json.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Defect {
    #[error("the line has schema {found}, this version of wardround reads {SCHEMA}")]
    Schema { found: u32 },
    #[error("the line does not end in its hash")]
    NoHash,
    #[error("the line was changed: its bytes hash to {computed}, it says {found}")]
    Hash { found: String, computed: String },
    #[error("the line is not a record: {0}")]
    NotARecord(String),
    #[error("the line is not spelled as its record is written")]
    Spelling,
    #[error("seq is {found} where {expected} comes next")]
    Seq { found: u64, expected: u64 },
    #[error("prev is {found}, the line before has the hash {expected}")]
    Prev { found: String, expected: String },
    #[error("{0} was logged before")]
    Repeated(String),
    #[error("the plan has no item {0} here")]
    Unplanned(String),
    #[error("the text of item {0} is missing")]
    NoText(String),
    #[error("its {field} is {found}, and by {by} it is {expected}")]
    Outcome { field: &'static str, found: String, by: &'static str, expected: String },
    #[error("the line is cut short")]
    Torn,
    #[error("the line is missing: results.json counts {expected} lines")]
    Cut { expected: u64 },
    #[error("results.json counts only the {expected} lines before")]
    Uncounted { expected: u64 },
    #[error("found `{found}` where the logs give `{expected}`")]
    Figure { found: String, expected: String },
    #[error(
        "the figures are said to be of version {found}, of which version {THIS} cannot know: it is later, or none"
    )]
    Version { found: String },
}

impl RunError {
    pub(crate) fn unloggable(what: impl ToString, reason: impl ToString) -> RunError {
        RunError::Unloggable { what: what.to_string(), reason: reason.to_string() }
    }
}

/// What to do where a file of a run cannot be read or written.
fn of_files(error: &io::Error) -> Option<String> {
    let hint = match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge => {
            "every finished call is kept: free some space, then go on with `wardround resume DIR`"
        }
        ErrorKind::PermissionDenied => "change its permissions, or run this as its owner",
        ErrorKind::ReadOnlyFilesystem | ErrorKind::NotADirectory => {
            "choose an `--out` that you may write to"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

impl From<io::Error> for RunError {
    fn from(error: io::Error) -> Self {
        RunError::Io(Arc::new(error))
    }
}

/// A signal ended a run, which can be resumed.
#[derive(Debug, thiserror::Error)]
#[error("interrupted after {items} of {total} items")]
pub struct Interrupted {
    pub items: u64,
    pub total: u64,
    pub directory: PathBuf,
}

impl Diagnosis for Interrupted {
    fn blame(&self) -> Blame {
        Blame::Interrupted
    }

    fn hint(&self) -> Option<String> {
        Some(resume(&self.directory))
    }
}

/// The command line that resumes the run in `directory`.
pub fn resume(directory: &Path) -> String {
    format!("`wardround resume {}` goes on", directory.display())
}
