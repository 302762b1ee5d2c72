//! Why a corpus cannot be described, built, opened or searched.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
use crate::encoder::EncoderError;
use crate::hub::HubError;

#[derive(Debug, Error)]
pub enum CorpusError {
    #[error("{} does not describe a corpus: {problem}", path.display())]
    Description { path: PathBuf, problem: String },
    #[error(
        "no corpus is called `{name}`, and there is no description at that path; known: {known}"
    )]
    Unknown { name: String, known: String },
    #[error("source `{label}` has no input at {}", path.display())]
    NoInput { label: String, path: PathBuf },
    #[error("{} has changed: its sha256 is {found}, and the corpus was begun with {expected}", path.display())]
    ChangedInput { path: PathBuf, expected: String, found: String },
    #[error("{}, line {line}: {problem}", path.display())]
    Row { path: PathBuf, line: usize, problem: String },
    #[error("{} is not UTF-8 at byte {byte}", path.display())]
    NotUtf8 { path: PathBuf, byte: u64 },
    #[error("{} {problem}", path.display())]
    Input { path: PathBuf, problem: String, hint: Option<String> },
    #[error("source `{label}` has two documents with the id `{id}`")]
    RepeatedId { label: String, id: String },
    #[error("a corpus holds {} chunks at most", u32::MAX)]
    TooMany,
    #[error("the vector of chunk {chunk} {problem}")]
    Vector { chunk: String, problem: String },
    #[error("{} exists and is not empty", path.display())]
    Taken { path: PathBuf },
    #[error("{} is being written by another process", path.display())]
    Busy { path: PathBuf },
    #[error("there is no corpus at {}: it has no corpus.toml", path.display())]
    NoCorpus { path: PathBuf },
    #[error("the corpus at {} was not built to its end", path.display())]
    Unfinished { path: PathBuf },
    #[error("{} is of schema {found}; this program reads up to {known}", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("{} is damaged: {problem}", path.display())]
    Damaged { path: PathBuf, problem: String },
    #[error("{} has {found} bytes, and corpus.toml says {expected}", path.display())]
    Size { path: PathBuf, expected: u64, found: u64 },
    #[error("{what} differs: {one} here, {other} there")]
    Differs { what: String, one: String, other: String, hint: &'static str },
    #[error("no source is called `{label}`; known: {known}")]
    UnknownSource { label: String, known: String },
    #[error("the corpus at {} has no {what}", path.display())]
    Lacks { path: PathBuf, what: &'static str, hint: &'static str },
    /// Where a build was told to stop.
    #[error("the build was stopped")]
    Stopped,
    #[error(transparent)]
    Encoder(#[from] EncoderError),
    #[error(transparent)]
    Hub(#[from] HubError),
    /// The message names the path.
    #[error(transparent)]
    Io(#[from] io::Error),
}

impl Diagnosis for CorpusError {
    fn blame(&self) -> Blame {
        match self {
            CorpusError::Io(error) => error.blame(),
            CorpusError::Encoder(error) => error.blame(),
            CorpusError::Hub(error) => error.blame(),
            CorpusError::Stopped => Blame::Interrupted,
            CorpusError::ChangedInput { .. }
            | CorpusError::NoCorpus { .. }
            | CorpusError::NoInput { .. }
            | CorpusError::Unfinished { .. }
            | CorpusError::Newer { .. }
            | CorpusError::Damaged { .. }
            | CorpusError::Size { .. } => Blame::Artefact,
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            CorpusError::NoInput { .. } => {
                "name the folder that holds the inputs with --data-dir; `wardround corpus fetch` downloads what may be"
            }
            CorpusError::NoCorpus { .. } => "name a directory that `wardround corpus build` wrote",
            CorpusError::ChangedInput { .. } => {
                "put the input back as it was, or build into a new directory"
            }
            CorpusError::NotUtf8 { .. } => "convert it: iconv -f LATIN1 -t UTF-8 FILE",
            CorpusError::Taken { .. } => {
                "name a new directory, or go on with --resume where a build was killed"
            }
            CorpusError::Unfinished { .. } => "`wardround corpus build --resume --out DIR` goes on",
            CorpusError::Newer { .. } => {
                "take the version of wardround that built it, or a newer one"
            }
            CorpusError::Damaged { .. } | CorpusError::Size { .. } => {
                "copy the corpus again, or build it again; `wardround corpus verify DIR` says what else is damaged"
            }
            CorpusError::Differs { hint, .. } | CorpusError::Lacks { hint, .. } => hint,
            CorpusError::Input { hint, .. } => return hint.clone(),
            CorpusError::Io(error) => return error.hint(),
            CorpusError::Encoder(error) => return error.hint(),
            CorpusError::Hub(error) => return error.hint(),
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
