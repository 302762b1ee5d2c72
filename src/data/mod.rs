//! Reads questions and notes from files: one reader per format; every row is checked and none is dropped silently.
//!
//! [`load`] reads all items of a file, [`subset::Subset`] selects those that run.

mod agreement;
mod cross_reference;
mod error;
mod format;
mod item;
pub mod json;
#[cfg(test)]
mod linear;
mod mcq;
mod medec;
mod mederrbench;
mod medmcqa;
mod medqa;
mod medxpertqa;
mod mmlu_pro;
mod notes;
mod pubmedqa;
mod row;
mod row_reader;
mod running_text;
mod script;
mod sentences;
mod source;
pub mod subset;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

pub use agreement::count_restricted;
pub use error::{DataError, Place, Position};
pub use format::Format;
pub use item::{Choice, Item, ItemKind, Note, NoteError, NoteGold, Question};
pub(crate) use row::Row;
pub(crate) use row_reader::RowReader;
use serde::{Deserialize, Serialize};
use source::{Rows, Source};

/// The path that stands for the built-in questions, in [`load`] and in plans.
pub const DEMO_PATH: &str = "built-in/demo.jsonl";
/// Their file, as [`Format::Mcq`] reads it.
pub const DEMO_TEXT: &str = include_str!("demo.jsonl");

/// A file of questions or notes that was read and checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// The dataset's name in the records of calls and items. A published format has its own name, whatever the file's name; the plain
    /// formats take the file's name without its extension.
    pub name: String,
    pub format: Format,
    /// The path as it was given.
    pub path: PathBuf,
    /// The SHA-256 over the bytes of every file read, in order: that of `path`, then for PubMedQA those of the test ids
    /// (`cat ori_pqal.json test_ground_truth.json | sha256sum`), for a folder those of its notes (`cat *.txt | sha256sum`
    /// in the C locale).
    pub sha256: String,
    /// In the file's order; at least one, with unique ids.
    pub items: Vec<Item>,
    /// Messages about rows that were left out and fields that are missing, with counts.
    pub notices: Vec<String>,
    /// Malformed rows that were left out, in the file's order; empty with [`BadRows::Refuse`].
    pub skipped: Vec<SkippedRow>,
}

impl Dataset {
    /// The items that are questions.
    pub fn questions(&self) -> Vec<&Question> {
        self.items.iter().filter_map(Item::question).collect()
    }

    /// The items that are notes.
    pub fn notes(&self) -> Vec<&Note> {
        self.items.iter().filter_map(Item::note).collect()
    }
}

/// The output of a format's reader, before ids are checked: each item with its place; a malformed row is an error in its place.
struct Draft {
    name: String,
    sha256: String,
    items: Vec<Result<(Place, Item), DataError>>,
    notices: Vec<String>,
}

impl Draft {
    /// The draft of questions from `rows`; `read` is told the row's number, from 1.
    fn questions(
        name: impl Into<String>,
        source: &Source,
        rows: Rows,
        read: impl FnMut(&Row, usize) -> Result<Question, DataError>,
    ) -> Draft {
        let mut notices = rows.notices();
        let questions = rows.numbered(read);
        let read = questions.iter().flatten();
        let unscored = read.clone().filter(|(_, question)| question.gold.is_none()).count();
        notices.extend(notice("questions without an answer, not scored", unscored, read.count()));
        Draft::new(name, &[source], questions, notices)
    }

    /// The draft of items from `sources`, whose bytes are hashed in this order.
    fn new<T: Into<Item>>(
        name: impl Into<String>,
        sources: &[&Source],
        items: Vec<Result<(Place, T), DataError>>,
        notices: Vec<String>,
    ) -> Draft {
        let items = items.into_iter();
        Draft {
            name: name.into(),
            sha256: source::sha256(sources),
            items: items.map(|item| item.map(|(place, item)| (place, item.into()))).collect(),
            notices,
        }
    }
}

/// How malformed rows are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BadRows {
    /// The file is refused.
    #[default]
    Refuse,
    /// The row is left out and listed.
    Skip,
}

impl BadRows {
    pub fn skip_where(skip: bool) -> BadRows {
        if skip { BadRows::Skip } else { BadRows::Refuse }
    }
}

/// A row that was left out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SkippedRow {
    /// The row's position in the file.
    pub row: String,
    pub problem: String,
}

/// `what: count of total`; `None` if the count is 0.
fn notice(what: &str, count: usize, total: usize) -> Option<String> {
    (count > 0).then(|| format!("{what}: {count} of {total}"))
}

/// Reads every item of a file, the built-in ones for [`DEMO_PATH`], or a folder of notes.
///
/// # Errors
/// The first malformed row, with file, line and field; a file without items; a duplicate id.
pub fn load(path: &Path, format: Format) -> Result<Dataset, DataError> {
    load_with(path, format, BadRows::Refuse)
}

/// As [`load`], with a choice to leave malformed rows out.
///
/// # Errors
/// Also with [`BadRows::Skip`] a file that cannot be split into rows, or of which no item is left.
pub fn load_with(path: &Path, format: Format, bad_rows: BadRows) -> Result<Dataset, DataError> {
    let draft = if format == Format::Notes && path.is_dir() {
        notes::read_folder(path)?
    } else if format == Format::Notes && error::has_extension(path, "txt") {
        return note(path, crate::outside::file(path)?);
    } else if path == Path::new(DEMO_PATH) {
        (format.reader().read)(&Source::new(path, DEMO_TEXT.as_bytes().to_vec())?)?
    } else {
        (format.reader().read)(&Source::read(path)?)?
    };
    checked(path.to_owned(), format, draft, bad_rows)
}

/// A dataset of one note with this text; its id is the path's file name without the extension.
///
/// # Errors
/// A text that is empty or not UTF-8.
pub fn note(path: &Path, text: Vec<u8>) -> Result<Dataset, DataError> {
    let source = Source::new(path, text)?;
    checked(
        path.to_owned(),
        Format::Notes,
        notes::read_texts(source.stem(), &[&source], Vec::new())?,
        BadRows::Refuse,
    )
}

/// The text of a file's bytes, without a byte order mark.
///
/// # Errors
/// Bytes that are not UTF-8, with their line.
pub(crate) fn text(path: &Path, bytes: Vec<u8>) -> Result<String, DataError> {
    Ok(Source::new(path, bytes)?.text().to_owned())
}

/// One question from a record of the plain format.
///
/// # Errors
/// A field that is missing, unknown or malformed.
pub fn question(line: &serde_json::Value) -> Result<Question, DataError> {
    let place = Place { path: "question".into(), position: Position::Line(1) };
    mcq::question(&Row::new(place, line.clone())?, 1)
}

/// The eight built-in questions.
pub fn demo() -> Result<Dataset, DataError> {
    load(Path::new(DEMO_PATH), Format::Mcq)
}

#[cfg(test)]
fn read(source: Source, format: Format) -> Result<Dataset, DataError> {
    let draft = (format.reader().read)(&source)?;
    checked(source.path, format, draft, BadRows::Refuse)
}

/// The dataset of a draft, whose ids are checked here.
fn checked(
    path: PathBuf,
    format: Format,
    draft: Draft,
    bad_rows: BadRows,
) -> Result<Dataset, DataError> {
    let mut notices = draft.notices;
    let mut positions: HashMap<String, Position> = HashMap::new();
    let (mut items, mut skipped) = (Vec::new(), Vec::new());
    for item in draft.items {
        let item = item.and_then(|(place, item)| match positions.get(item.id()) {
            Some(first) => Err(place.repeats(item.id(), first)),
            None => {
                positions.insert(item.id().to_owned(), place.position);
                Ok(item)
            }
        });
        match item {
            Ok(item) => items.push(item),
            Err(DataError::Row { place, problem, .. }) if bad_rows == BadRows::Skip => {
                skipped.push(SkippedRow { row: place.position.to_string(), problem });
            }
            Err(error) => return Err(error),
        }
    }
    notices.extend(notice("bad rows, left out", skipped.len(), skipped.len() + items.len()));
    if items.is_empty() {
        return Err(DataError::Empty { path, kind: format.kind(), notices });
    }
    let Draft { name, sha256, .. } = draft;
    Ok(Dataset { name, format, path, sha256, items, notices, skipped })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ids that are left of a file with bad rows, and where those stood.
    fn skipping(name: &str, content: &str, format: Format) -> (Vec<String>, Vec<SkippedRow>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        fs_err::write(&path, content).unwrap();
        assert!(load(&path, format).is_err());
        let dataset = load_with(&path, format, BadRows::Skip).unwrap();
        let (bad, all) = (dataset.skipped.len(), dataset.items.len() + dataset.skipped.len());
        let notice = format!("bad rows, left out: {bad} of {all}");
        assert!(dataset.notices.contains(&notice), "{:?}", dataset.notices);
        let ids = dataset.items.iter().map(|item| item.id().to_owned());
        (ids.collect(), dataset.skipped)
    }

    #[test]
    fn bad_rows_are_left_out_where_that_is_asked_for_and_listed() {
        let good = r#"{"question": "q", "options": ["x", "y"], "answer": "A"}"#;
        let twice = good.replace("{", r#"{"id": 1, "#);
        let content = format!("{good}\n{{\"question\": \n[]\n{good}\n{twice}\n");
        let (ids, skipped) = skipping("ward.jsonl", &content, Format::Mcq);
        assert_eq!(ids, ["1", "4"]);
        let told = skipped.iter().map(|row| format!("{}: {}", row.row, row.problem));
        assert_eq!(
            told.collect::<Vec<_>>(),
            [
                "line 2: EOF while parsing a value, at column 13",
                "line 3: an object is expected",
                "line 5: the id `1` came before, in line 1",
            ]
        );
    }

    #[test]
    fn ids_that_count_records_count_the_bad_ones_too() {
        let good = r#"{"question": "q", "answer": "x", "options": {"A": "w", "B": "x", "C": "y", "D": "z"}, "answer_idx": "B"}"#;
        let bad = good.replace(r#""answer": "x""#, r#""answer": "z""#);
        let (ids, skipped) = skipping("us.jsonl", &format!("{bad}\n{good}\n"), Format::Medqa);
        assert_eq!(ids, ["medqa_mc_002"]);
        assert_eq!(skipped[0].problem, "field `answer` is not the text of option B");
    }

    #[test]
    fn what_is_no_rows_fault_is_refused_all_the_same() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ward.csv");
        let cases = [
            ("question,A,B\nq,x,\"y\n", "a quote is not closed"),
            ("question,A,B,gold\nq,x,y,A\n", "`gold` is unknown"),
            ("question,A,B\nq,x\n", "no questions; bad rows, left out: 1 of 1"),
        ];
        for (content, expected) in cases {
            fs_err::write(&path, content).unwrap();
            let error = load_with(&path, Format::Mcq, BadRows::Skip).unwrap_err();
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = load(Path::new("no/such.jsonl"), Format::Mcq).unwrap_err();
        assert!(error.to_string().contains("no/such.jsonl"), "{error}");
    }
}
