//! Reads questions and notes from files: one reader per format; every row is checked and none is dropped silently.
//!
//! [`load`] reads all items of a file, [`subset::Subset`] selects those that run.

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

pub use error::{DataError, Place, Position};
pub use format::Format;
pub use item::{Choice, Item, ItemKind, Note, Question};
pub(crate) use row::Row;
pub(crate) use row_reader::RowReader;
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

    /// Of questions from `rows`; `read` is told a row's number, from 1.
    fn of_questions(
        name: impl Into<String>,
        source: &Source,
        Rows { rows, mut notices, .. }: Rows,
        read: impl FnMut(&Row, usize) -> Result<Question, DataError>,
    ) -> Result<Dataset, DataError> {
        let questions = source::numbered(rows, read)?;
        let unscored = questions.iter().filter(|(_, question)| question.gold.is_none()).count();
        let told = "questions without an answer, not scored";
        notices.extend(notice(told, unscored, questions.len()));
        Dataset::new(name, &source.path, &[source], ItemKind::Questions, questions, notices)
    }

    /// Of items of one kind with their places, from `sources`, whose bytes are hashed in this order.
    fn new<T: Into<Item>>(
        name: impl Into<String>,
        path: &Path,
        sources: &[&Source],
        kind: ItemKind,
        found: Vec<(Place, T)>,
        notices: Vec<String>,
    ) -> Result<Dataset, DataError> {
        let mut positions: HashMap<String, Position> = HashMap::new();
        let mut items: Vec<Item> = Vec::new();
        for (place, item) in found {
            let item = item.into();
            if let Some(first) = positions.insert(item.id().to_owned(), place.position.clone()) {
                return Err(place.repeats(item.id(), &first));
            }
            items.push(item);
        }
        let (name, path, sha256) = (name.into(), path.to_owned(), source::sha256(sources));
        match items.is_empty() {
            true => Err(DataError::Empty { path, kind, notices }),
            false => Ok(Dataset { name, path, sha256, items, notices }),
        }
    }
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
    match format {
        Format::Notes if path.is_dir() => notes::read_folder(path),
        Format::Notes if error::has_extension(path, "txt") => {
            note(path, crate::outside::file(path)?)
        }
        _ if path == Path::new(DEMO_PATH) => {
            format.read(&Source::new(path, DEMO_TEXT.as_bytes().to_vec())?)
        }
        _ => format.read(&Source::read(path)?),
    }
}

/// A dataset of one note with this text; its id is the path's file name without the extension.
///
/// # Errors
/// A text that is empty or not UTF-8.
pub fn note(path: &Path, text: Vec<u8>) -> Result<Dataset, DataError> {
    let source = Source::new(path, text)?;
    notes::read_texts(source.stem(), path, &[&source], Vec::new())
}

/// The text of a file's bytes, without a byte order mark.
///
/// # Errors
/// Bytes that are not UTF-8, with their line.
pub(crate) fn text(path: &Path, bytes: Vec<u8>) -> Result<String, DataError> {
    Ok(Source::new(path, bytes)?.text().to_owned())
}
