//! Why a corpus cannot be described, built, opened or searched.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::data::DataError;
use crate::encoder::EncoderError;
use crate::fault::faults;
use crate::hub::HubError;

const AGAIN: &str = "copy the corpus again, or build it again; `wardround corpus verify DIR` says what else is damaged";

faults! {
    #[derive(Debug, Error)]
    pub enum CorpusError {
        #[error("{} does not describe a corpus: {problem}", path.display())]
        Description { path: PathBuf, problem: String } => Usage;
        #[error(
            "no corpus is called `{name}`, and there is no description at that path; known: {known}"
        )]
        Unknown { name: String, known: String } => Usage;
        #[error("source `{label}` has no input at {}", path.display())]
        NoInput { label: String, path: PathBuf } => Artefact,
            "name the folder that holds the inputs with --data-dir; docs/corpora.md says where from";
        #[error("{} has changed: its sha256 is {found}, and the corpus was begun with {expected}", path.display())]
        ChangedInput { path: PathBuf, expected: String, found: String } => Artefact,
            "put the input back as it was, or build into a new directory";
        #[error("{} {problem}", path.display())]
        Input { path: PathBuf, problem: String } => Usage,
            "docs/corpora.md says what a source may hold, and how other files become text";
        #[error("source `{label}` has two documents with the id `{id}`")]
        RepeatedId { label: String, id: String } => Usage;
        #[error("a corpus holds {} chunks at most", u32::MAX)]
        TooMany => Usage;
        #[error("the vector of chunk {chunk} {problem}")]
        Vector { chunk: String, problem: String } => Usage;
        #[error("{} exists and is not empty", path.display())]
        Taken { path: PathBuf } => Usage,
            "name a new directory; a build that was killed goes on by the very command that began it";
        #[error("{} is being written by another process", path.display())]
        Busy { path: PathBuf } => Usage;
        #[error("there is no corpus at {}: it has no corpus.toml", path.display())]
        NoCorpus { path: PathBuf } => Artefact,
            "name a directory that `wardround corpus build` wrote";
        #[error("the corpus at {} was not built to its end", path.display())]
        Unfinished { path: PathBuf } => Artefact,
            "the `corpus build` that began it goes on when it is given again";
        #[error("{} is of schema {found}; this program reads up to {known}", path.display())]
        Newer { path: PathBuf, found: i64, known: u32 } => Artefact,
            "take the version of wardround that built it, or a newer one";
        #[error("{} is damaged: {problem}", path.display())]
        Damaged { path: PathBuf, problem: String } => Artefact, AGAIN;
        #[error("{} has {found} bytes, and corpus.toml says {expected}", path.display())]
        Size { path: PathBuf, expected: u64, found: u64 } => Artefact, AGAIN;
        #[error("{what} differs: {one} here, {other} there")]
        Differs { what: String, one: String, other: String, hint: &'static str } => Usage, *hint;
        #[error("no source is called `{label}`; known: {known}")]
        UnknownSource { label: String, known: String } => Usage;
        #[error("the corpus at {} has no {what}", path.display())]
        Lacks { path: PathBuf, what: &'static str, hint: &'static str } => Usage, *hint;
        #[error(transparent)]
        Encoder(error: #[from] EncoderError) => error.blame(), error.hint();
        #[error(transparent)]
        Hub(error: #[from] HubError) => error.blame(), error.hint();
        /// Of a file of rows; what a row's field lacks, its message says.
        #[error(transparent)]
        Data(error: #[from] DataError) => error.blame(),
            error.hint().filter(|_| matches!(error, DataError::Encoding(_) | DataError::Read(_)));
        /// The message names the path.
        #[error(transparent)]
        Io(error: #[from] io::Error) => error.blame(), error.hint();
    }
}
