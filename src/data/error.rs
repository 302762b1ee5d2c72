//! Errors in files of questions or notes, with the place in the file.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use clap::ValueEnum;
use serde_json::Value;
use thiserror::Error;

use super::{Format, ItemKind, SkippedRow};
use crate::diagnosis::{Blame, Diagnosis, Failure};

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
    /// Whether it is the names of a CSV file's columns.
    fn is_header(&self) -> bool {
        has_extension(&self.path, "csv") && matches!(self.position, Position::Line(1))
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

/// Why a file of questions or notes, or a subset of it, is refused.
#[derive(Debug, Error)]
pub enum DataError {
    /// The message of `fs_err` names the path.
    #[error(transparent)]
    Read(#[from] io::Error),
    #[error("{0}: not valid UTF-8")]
    Encoding(Place),
    /// `notices` say which rows were left out.
    #[error("{}: no {kind}{}", path.display(), after_semicolons(notices))]
    Empty { path: PathBuf, kind: ItemKind, notices: Vec<String> },
    /// The row could not be split into fields.
    #[error("{place}: {problem}")]
    Syntax { place: Place, problem: String },
    #[error("{place}: field `{}` {problem}", shortened(field))]
    Field { place: Place, field: String, problem: String },
    #[error("{place}: the id `{}` came before, in {first}", shortened(id))]
    RepeatedId { place: Place, id: String, first: Position },
    /// `example` is an id that exists in the dataset.
    #[error("{place}: no item has the id `{}`", shortened(id))]
    UnknownId { place: Place, id: String, example: String },
    #[error("{0} chooses no item")]
    NoneChosen(String),
    #[error("unknown format `{0}`")]
    UnknownFormat(String),
}

impl DataError {
    /// The message without the place in the file.
    pub fn problem(&self) -> String {
        self.row().map_or_else(|| self.to_string(), |row| row.problem)
    }

    /// The failure for a command without `--skip-bad-rows`; `hint` replaces the hint of a malformed row.
    pub fn of_needed_rows(self, hint: &str) -> Failure {
        match self {
            DataError::Field { .. } => Failure::usage(self.to_string(), hint),
            other => other.into(),
        }
    }

    /// The malformed row, if the error is about a single row.
    pub(super) fn row(&self) -> Option<SkippedRow> {
        let (DataError::Syntax { place, .. }
        | DataError::Field { place, .. }
        | DataError::RepeatedId { place, .. }) = self
        else {
            return None;
        };
        let whole = self.to_string();
        let problem = whole.strip_prefix(&format!("{place}: ")).unwrap_or(&whole);
        Some(SkippedRow { row: place.position.to_string(), problem: problem.to_owned() })
    }
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
            DataError::Read(error) if error.kind() == ErrorKind::NotFound => {
                "check the path, which is relative to the current directory".to_owned()
            }
            DataError::Read(error) if error.kind() == ErrorKind::IsADirectory => {
                "name a file; of directories only those with .txt notes are read (--format notes)"
                    .to_owned()
            }
            DataError::Encoding(_) => {
                "save the file as UTF-8 («CSV UTF-8» in Excel); .xlsx is not read".to_owned()
            }
            DataError::Syntax { place, .. } if has_extension(&place.path, "csv") => {
                "columns are separated by commas, not semicolons; a cell with a comma, a quote or a line \
                 break in it stands in quotes, its own quotes doubled"
                    .to_owned()
            }
            DataError::Syntax { .. } => {
                "medqa, mmlu-pro, medmcqa, medxpertqa, mcq and notes files hold one JSON object a line, pubmedqa files one \
                 in all, medec and mederrbench files CSV; a CSV file's name ends in .csv"
                    .to_owned()
            }
            DataError::Field { place, field, .. } if place.is_header() && field.contains(';') => {
                "the columns are separated by semicolons: save the file with commas".to_owned()
            }
            DataError::Field { place, problem, .. }
                if place.is_header() && problem.contains("is unknown") =>
            {
                "remove or rename the column; --skip-bad-rows does not help, since it is the header"
                    .to_owned()
            }
            DataError::Field { .. } => {
                "fix the row, or leave bad rows out with --skip-bad-rows; if all rows look like it, another format may be right".to_owned()
            }
            DataError::RepeatedId { .. } => "give each item an id of its own".to_owned(),
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

/// The most characters of a file's text that an error shows.
const MOST_QUOTED: usize = 200;

/// A text of a file for an error message: unprintable characters are escaped, and a long text is truncated.
pub(super) fn shortened(text: &str) -> String {
    let mut shown: String = text.chars().take(MOST_QUOTED).collect();
    let escaped = |shown: &str| {
        let quoted = format!("{shown:?}");
        quoted[1..quoted.len() - 1].to_owned()
    };
    while escaped(&shown).chars().count() > MOST_QUOTED {
        shown.pop();
    }
    match shown.len() == text.len() {
        true => escaped(&shown),
        false => format!("{}… ({} characters in all)", escaped(&shown), text.chars().count()),
    }
}

/// The most characters of a value that an error shows: codes and labels are no longer.
const LONGEST_VALUE: usize = 12;

/// A value of a malformed row: shown where it is a short word, else its length alone, for it may be of a patient.
pub(super) fn quoted(text: &str) -> String {
    let count = text.chars().count();
    match count <= LONGEST_VALUE && !text.contains(char::is_whitespace) {
        true => format!("\"{}\"", shortened(text)),
        false => format!("a text of {count} characters"),
    }
}

/// A JSON value for an error message.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        Value::Array(list) => format!("a list of {}", list.len()),
        Value::Object(fields) => format!("an object of {} fields", fields.len()),
        other => shortened(&other.to_string()),
    }
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
    fn a_value_that_may_be_of_a_patient_is_not_shown() {
        assert_eq!(quoted("E"), "\"E\"");
        assert_eq!(quoted("a\u{7}b"), "\"a\\u{7}b\"");
        for text in ["PATIENT-JOHN-DOE", "John Doe", "a\nb"] {
            assert_eq!(quoted(text), format!("a text of {} characters", text.len()));
            assert_eq!(shown(&Value::from(text)), quoted(text));
        }
        assert_eq!(shown(&serde_json::json!(["John Doe"])), "a list of 1");
        assert_eq!(shown(&serde_json::json!({"John Doe": 1})), "an object of 1 fields");
        assert_eq!(shown(&serde_json::json!(17)), "17");
    }

    #[test]
    fn a_long_text_is_cut_and_what_cannot_be_printed_is_escaped() {
        assert_eq!(shortened("a \"b\" é\n"), r#"a \"b\" é\n"#);
        let whole = "é".repeat(200);
        assert_eq!(shortened(&whole), whole);
        assert_eq!(shortened(&format!("{whole}é")), format!("{whole}… (201 characters in all)"));
        let nothing = shortened(&"\0".repeat(10_000));
        assert_eq!(nothing, format!("{}… (10000 characters in all)", r"\0".repeat(100)));
    }
}
