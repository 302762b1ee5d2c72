//! Why a submission file cannot be read or written.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::fault::faults;

faults! {
    #[derive(Debug, Error)]
    pub enum SubmissionError {
        /// The message names the path.
        #[error(transparent)]
        Read(error: #[from] io::Error) => error.blame();
        #[error("{}: not valid UTF-8", path.display())]
        Encoding { path: PathBuf } => Usage;
        #[error("{}:{line}: the backslash of `{escape}` cannot be read", path.display())]
        Escape { path: PathBuf, line: usize, escape: String } => Usage,
            "the official scorer stops here: it takes backslashes for escapes, so double them";
        #[error("the id `{id}` cannot stand in a submission")]
        Id { id: String } => Usage, "an id has a to z, 0 to 9 and - alone";
        #[error("note {id} has no gold to score against")]
        NoGold { id: String } => Usage;
    }
}
