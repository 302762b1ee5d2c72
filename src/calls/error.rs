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
        #[error("{}: others than its owner may write it (mode {mode:03o})", path.display())]
        Writable { path: PathBuf, mode: u32 } => Usage,
            "whoever writes it decides what models are said to have answered: take the right away, as with `chmod -R go-w DIR`";
        #[error(transparent)]
        Io(inner: #[from] io::Error) => inner.blame(), inner.hint();
    }
}
