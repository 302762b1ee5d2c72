//! Errors in files of questions or notes, with the place in the file.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use thiserror::Error;

use super::ItemKind;
use crate::fault::faults;

/// What to do about a malformed row.
pub(super) const MEND: &str =
    "fix the row, or take it out; if all rows look like it, another format may be right";
pub(super) const MEND_CSV: &str = "columns are separated by commas, not semicolons; a cell with a comma, a quote or a line break in it stands in quotes, its own quotes doubled";
pub(super) const MEND_JSON: &str = "medqa, mmlu-pro, medxpertqa, mcq and notes files hold one JSON object a line, pubmedqa files one in all, medec and mederrbench files CSV; a CSV file's name ends in .csv";

/// A position in a file: a line number, or the name of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Position {
    /// From 1.
    Line(usize),
    /// The key of a record in a file that is one JSON object, or the number of a list entry, from 1.
    Record(String),
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line(line) => write!(f, "line {line}"),
            Position::Record(record) => write!(f, "record {}", shortened(record)),
        }
    }
}

/// A file and a position in it, displayed as `file:line` or `file: record key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub path: PathBuf,
    pub position: Position,
}

impl Place {
    /// The error for the row that stands here.
    pub(super) fn refused(&self, problem: impl Into<String>, hint: &'static str) -> DataError {
        DataError::Row { place: self.clone(), problem: problem.into(), hint }
    }

    /// The error for a field; in the message `problem` follows the field's name.
    pub(super) fn of_field(&self, field: &str, problem: impl Into<String>) -> DataError {
        self.refused(format!("field `{}` {}", shortened(field), problem.into()), MEND)
    }

    /// The error for an id that came before.
    pub(super) fn repeats(&self, id: &str, first: &Position) -> DataError {
        let problem = format!("the id `{}` came before, in {first}", shortened(id));
        self.refused(problem, "give each item an id of its own")
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.position {
            Position::Line(line) => write!(f, "{}:{line}", self.path.display()),
            record => write!(f, "{}: {record}", self.path.display()),
        }
    }
}

faults! {
    /// Why a file of questions or notes, or a subset of it, is refused.
    #[derive(Debug, Error)]
    pub enum DataError {
        /// The message of `fs_err` names the path.
        #[error(transparent)]
        Read(error: #[from] io::Error) => error.blame(), error.hint();
        #[error("{0}: not valid UTF-8")]
        Encoding(place: Place)
            => Usage, "save the file as UTF-8 («CSV UTF-8» in Excel); .xlsx is not read";
        /// `notices` say which rows were left out.
        #[error("{}: no {kind}{}", path.display(), after_semicolons(notices))]
        Empty { path: PathBuf, kind: ItemKind, notices: Vec<String> } => Usage;
        /// A malformed row. No value of it is shown, for it may be of a patient.
        #[error("{place}: {problem}")]
        Row { place: Place, problem: String, hint: &'static str } => Usage, *hint;
        /// `example` is an id that exists in the dataset.
        #[error("{place}: no item has the id `{}`", shortened(id))]
        UnknownId { place: Place, id: String, example: String }
            => Usage, format!("an id of this dataset is `{example}`");
        #[error("no item is chosen")]
        NoneChosen => Usage;
    }
}

/// The most characters of a file's text that an error shows.
const MOST_QUOTED: usize = 200;

/// A text of a file for an error message: unprintable characters are escaped, and a long text is cut.
pub(super) fn shortened(text: &str) -> String {
    let mut escaped = text.escape_debug();
    let shown: String = escaped.by_ref().take(MOST_QUOTED).collect();
    if escaped.next().is_none() { shown } else { shown + "…" }
}

/// Whether a file's name ends in this extension, in any case.
pub(super) fn has_extension(path: &Path, extension: &str) -> bool {
    path.extension().is_some_and(|found| found.eq_ignore_ascii_case(extension))
}

fn after_semicolons(notices: &[String]) -> String {
    notices.iter().map(|notice| format!("; {notice}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_cut_and_what_cannot_be_printed_is_escaped() {
        assert_eq!(shortened("a \"b\" é\n"), r#"a \"b\" é\n"#);
        let whole = "é".repeat(200);
        assert_eq!(shortened(&whole), whole);
        assert_eq!(shortened(&format!("{whole}é")), format!("{whole}…"));
        let nothing = shortened(&"\0".repeat(10_000));
        assert_eq!(nothing, format!("{}…", r"\0".repeat(100)));
    }
}
