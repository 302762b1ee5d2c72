//! Why a submission file cannot be read or written.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

use crate::diagnosis::{Blame, Diagnosis};
#[derive(Debug, Error)]
pub enum SubmissionError {
    /// The message names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{}: not valid UTF-8", path.display())]
    Encoding { path: PathBuf },
    #[error("{}:{line}: the backslash of `{escape}` cannot be read", path.display())]
    Escape { path: PathBuf, line: usize, escape: String },
    #[error("the id `{id}` cannot stand in a submission")]
    Id { id: String },
    #[error("note {id} has no gold to score against")]
    NoGold { id: String },
}

impl Diagnosis for SubmissionError {
    fn blame(&self) -> Blame {
        match self {
            SubmissionError::Read(error) => error.blame(),
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            SubmissionError::Escape { .. } => {
                "the official scorer stops here: it takes backslashes for escapes, so double them"
            }
            SubmissionError::Id { .. } => "an id has a to z, 0 to 9 and - alone",
            _ => return None,
        };
        Some(hint.to_owned())
    }
}
