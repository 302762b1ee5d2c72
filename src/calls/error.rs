//! What can go wrong with a store of calls. What goes wrong while calls are made is told and costs no call: they are computed.

use std::io;
use std::path::PathBuf;

use crate::fault::faults;

faults! {
    /// An error of a store of calls.
    #[derive(Debug, thiserror::Error)]
    pub enum CallsError {
        #[error("{} is no store of calls: it holds {other}", path.display())]
        NotAStore { path: PathBuf, other: String } => Usage, "name an empty or a new directory, or one that --calls has written";
        #[error("{} is no file of calls: its first line is not `{}`", path.display(), super::segment::HEADER)]
        NotCalls { path: PathBuf } => Artefact, "name a file that `wardround calls export` wrote; in a store, move it away";
        #[error("{}, line {line}: {defect}", path.display())]
        BadLine {
            path: PathBuf,
            /// Counted from 1.
            line: usize,
            defect: &'static str,
        } => Artefact, "nothing was imported: fetch the file again";
        #[error("{} is being cleared by another process", path.display())]
        Busy { path: PathBuf } => Usage, "wait for it to end";
        #[error("{} is cut off", path.display())]
        CutOff { path: PathBuf } => Artefact, "nothing was imported: fetch the file again";
        #[error(transparent)]
        Io(inner: #[from] io::Error) => inner.blame(), inner.hint();
    }
}
