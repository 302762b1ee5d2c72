//! Questions and notes from files: one reader per published format, each row checked, none dropped silently.
//!
//! [`load`] reads a file whole, [`subset::Subset`] says which of its items run.

mod error;
mod item;
mod json;
mod mcq;
mod medec;
mod mederrbench;
mod medqa;
mod mmlu_pro;
mod notes;
mod pubmedqa;
mod row;
mod script;
mod sentences;
mod source;
pub mod subset;
mod table;

use std::collections::HashMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

pub use error::{DataError, Place, Position};
pub use item::{Choice, Item, ItemKind, Note, NoteError, NoteGold, Question};
use source::Source;

/// The path that stands for the built-in questions, in [`load`] as in a plan.
pub const DEMO_PATH: &str = "built-in/demo.jsonl";

/// How a file of questions or notes is laid out. Its name is the same on the command line, in a plan and in [`fmt::Display`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Format {
    /// MedQA's own JSON Lines, with 4 or 5 options
    Medqa,
    /// PubMedQA's ori_pqal.json, with test_ground_truth.json beside it
    Pubmedqa,
    /// MMLU-Pro as JSON Lines; its professional medicine questions
    MmluPro,
    /// Your own questions, as JSON Lines or CSV
    Mcq,
    /// MEDEC's CSV; of it the notes of MEDEC-MS
    Medec,
    /// MedErrBench's CSV, in English, Chinese or Arabic
    Mederrbench,
    /// Your own notes, as a folder of .txt files, JSON Lines or CSV
    Notes,
}

/// How a format is called and read.
struct Reader {
    name: &'static str,
    kind: ItemKind,
    read: Read,
}

type Read = fn(&Source) -> Result<Draft, DataError>;

impl Format {
    /// The table of formats.
    fn reader(self) -> Reader {
        use ItemKind::{Notes, Questions};
        let of = |name, kind, read: Read| Reader { name, kind, read };
        match self {
            Format::Medqa => of("medqa", Questions, medqa::read),
            Format::Pubmedqa => of("pubmedqa", Questions, pubmedqa::read),
            Format::MmluPro => of("mmlu-pro", Questions, mmlu_pro::read),
            Format::Mcq => of("mcq", Questions, mcq::read),
            Format::Medec => of("medec", Notes, medec::read),
            Format::Mederrbench => of("mederrbench", Notes, mederrbench::read),
            Format::Notes => of("notes", Notes, notes::read),
        }
    }

    pub fn name(self) -> &'static str {
        self.reader().name
    }

    /// What a file of this format holds.
    pub fn kind(self) -> ItemKind {
        self.reader().kind
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Format {
    type Err = DataError;

    fn from_str(name: &str) -> Result<Self, DataError> {
        let mut formats = Format::value_variants().iter().copied();
        formats
            .find(|format| format.name() == name)
            .ok_or_else(|| DataError::UnknownFormat(name.to_owned()))
    }
}

/// A file of questions or notes, read and checked whole.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dataset {
    /// What calls and items are filed under. A published format names itself, whatever its file is called; the plain
    /// format takes the file's name without its extension.
    pub name: String,
    pub format: Format,
    /// As it was given.
    pub path: PathBuf,
    /// Over the bytes of every file read, in order: that of `path`, then for PubMedQA those of the test ids
    /// (`cat ori_pqal.json test_ground_truth.json | sha256sum`), for a folder those of its notes (`cat *.txt | sha256sum`
    /// in the C locale).
    pub sha256: String,
    /// In the file's order, one at least, no id twice.
    pub items: Vec<Item>,
    /// What was left out or is missing, with counts.
    pub notices: Vec<String>,
}

impl Dataset {
    /// Those of the items that are questions.
    pub fn questions(&self) -> Vec<&Question> {
        self.items.iter().filter_map(Item::question).collect()
    }

    /// Those of the items that are notes.
    pub fn notes(&self) -> Vec<&Note> {
        self.items.iter().filter_map(Item::note).collect()
    }
}

/// What a format's reader found, with the place of each item.
struct Draft {
    name: String,
    sha256: String,
    items: Vec<(Place, Item)>,
    notices: Vec<String>,
}

impl Draft {
    /// Of `sources`, whose bytes are hashed in this order.
    fn new<T: Into<Item>>(
        name: impl Into<String>,
        sources: &[&Source],
        items: Vec<(Place, T)>,
        notices: Vec<String>,
    ) -> Draft {
        let items = items.into_iter();
        Draft {
            name: name.into(),
            sha256: source::sha256(sources),
            items: items.map(|(place, item)| (place, item.into())).collect(),
            notices,
        }
    }
}

/// `what: count of total`, where there are any.
fn notice(what: &str, count: usize, total: usize) -> Option<String> {
    (count > 0).then(|| format!("{what}: {count} of {total}"))
}

/// Reads every item of a file, the built-in ones for [`DEMO_PATH`], or a folder of notes.
///
/// # Errors
///
/// The first row that is not what its format says, with file, line and field; also a file without an item and an id
/// that comes twice.
pub fn load(path: &Path, format: Format) -> Result<Dataset, DataError> {
    if format == Format::Notes && path.is_dir() {
        return checked(path.to_owned(), format, notes::read_folder(path)?);
    }
    if format == Format::Notes && path.extension().is_some_and(|extension| extension == "txt") {
        return note(path, fs_err::read(path)?);
    }
    let source = if path == Path::new(DEMO_PATH) {
        Source::new(path, include_bytes!("demo.jsonl").to_vec())?
    } else {
        Source::read(path)?
    };
    read(source, format)
}

/// One note, whose text this is; its id is the path's file name without the extension.
///
/// # Errors
///
/// A text that is empty or no UTF-8.
pub fn note(path: &Path, text: Vec<u8>) -> Result<Dataset, DataError> {
    let source = Source::new(path, text)?;
    checked(
        path.to_owned(),
        Format::Notes,
        notes::read_texts(source.stem(), &[&source], Vec::new())?,
    )
}

/// Eight questions of our own, in the plain format, built into the binary.
///
/// # Errors
///
/// None: the tests read these questions.
pub fn demo() -> Result<Dataset, DataError> {
    load(Path::new(DEMO_PATH), Format::Mcq)
}

fn read(source: Source, format: Format) -> Result<Dataset, DataError> {
    let draft = (format.reader().read)(&source)?;
    checked(source.path, format, draft)
}

/// A draft of one item at least, no id twice, as a dataset.
fn checked(path: PathBuf, format: Format, draft: Draft) -> Result<Dataset, DataError> {
    if draft.items.is_empty() {
        return Err(DataError::Empty { path, kind: format.kind(), notices: draft.notices });
    }
    let mut positions = HashMap::new();
    for (place, item) in &draft.items {
        if let Some(first) = positions.insert(item.id(), &place.position) {
            return Err(DataError::RepeatedId {
                place: place.clone(),
                id: item.id().to_owned(),
                first: first.clone(),
            });
        }
    }
    let items = draft.items.into_iter().map(|(_, item)| item).collect();
    Ok(Dataset {
        name: draft.name,
        format,
        path,
        sha256: draft.sha256,
        items,
        notices: draft.notices,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diagnosis::Diagnosis;

    #[test]
    fn a_format_has_one_name_everywhere() {
        for &format in Format::value_variants() {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
            assert_eq!(format.to_possible_value().unwrap().get_name(), format.name());
            assert_eq!(serde_json::to_value(format).unwrap(), format.name());
        }
        let error = "csv".parse::<Format>().unwrap_err();
        assert_eq!(error.to_string(), "unknown format `csv`");
        assert!(error.hint().unwrap().contains("mmlu-pro"));
    }

    #[test]
    fn a_file_that_cannot_be_read_is_named() {
        let error = load(Path::new("no/such.jsonl"), Format::Mcq).unwrap_err();
        assert!(error.to_string().contains("no/such.jsonl"), "{error}");
    }
}
