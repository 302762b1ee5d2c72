//! What can be wrong with a file of questions or notes, and where.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use thiserror::Error;

use super::{Format, ItemKind};
use crate::diagnosis::{Blame, Diagnosis};

/// Where in a file: what an editor can jump to, or else the record's own name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// From 1.
    Line(usize),
    /// The key of a record in a file that is one JSON object, or the number from 1 of an entry in a list.
    Record(String),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Record(record) => write!(f, "record {record}"),
        }
    }
}

/// A position and its file; prints as `file:line` or `file: record key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub position: Position,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Position::Line(line) => write!(f, "{}:{line}", self.path.display()),
            record => write!(f, "{}: {record}", self.path.display()),
        }
    }
}

/// Why a file of questions or notes, or a choice among them, is refused.
#[derive(Debug, Error)]
pub enum DataError {
    /// The message names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{0}: not valid UTF-8")]
    Encoding(Place),
    /// The notices say what was left out.
    #[error("{}: no {kind}{}", path.display(), after_semicolons(notices))]
    Empty { path: PathBuf, kind: ItemKind, notices: Vec<String> },
    /// The row could not be taken apart into fields.
    #[error("{place}: {problem}")]
    Syntax { place: Place, problem: String },
    #[error("{place}: field `{field}` {problem}")]
    Field { place: Place, field: String, problem: String },
    #[error("{place}: the id `{id}` came before, in {first}")]
    RepeatedId { place: Place, id: String, first: Position },
    /// `example` is an id that the dataset does have.
    #[error("{place}: no item has the id `{id}`")]
    UnknownId { place: Place, id: String, example: String },
    #[error("{0} chooses no item")]
    NoneChosen(String),
    #[error("unknown format `{0}`")]
    UnknownFormat(String),
}

impl Diagnosis for DataError {
    fn blame(&self) -> Blame {
        match self {
            DataError::Read(error) => error.blame(),
            _ => Blame::Usage,
        }
    }

    fn hint(&self) -> Option<String> {
        let hint = match self {
            DataError::Encoding(_) => "save the file as UTF-8".to_owned(),
            DataError::Syntax { place, .. } if is_csv(&place.path) => {
                "a cell with a comma, a quote or a line break in it stands in quotes, its own quotes \
                 doubled"
                    .to_owned()
            }
            DataError::Syntax { .. } => {
                "medqa, mmlu-pro, mcq and notes files hold one JSON object a line, pubmedqa files one \
                 in all, medec and mederrbench files CSV; a CSV file's name ends in .csv"
                    .to_owned()
            }
            DataError::Field { .. } => {
                "mend the row; if all rows look like it, another --format may be right".to_owned()
            }
            DataError::UnknownId { example, .. } => format!("an id of this dataset is `{example}`"),
            DataError::UnknownFormat(_) => {
                let names = Format::value_variants().iter().map(|format| format.name());
                format!("the formats are {}", names.collect::<Vec<_>>().join(", "))
            }
            _ => return None,
        };
        Some(hint)
    }
}

/// Whether the plain format reads this file as CSV rather than JSON Lines.
pub(super) fn is_csv(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("csv"))
}

fn after_semicolons(notices: &[String]) -> String {
    notices.iter().map(|notice| format!("; {notice}")).collect()
}
