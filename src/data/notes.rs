//! The plain format for the user's own notes: a `.txt` file or a folder of them, JSON Lines, or CSV in a file whose name ends in `.csv`.
//! `docs/notes.md` says what a line has.
//!
//! A `.txt` file is one note, whose id is the file's name without the extension; the notes of a folder run in the order of their names. Of a
//! line whose `sentence` is given, it must be the one of its `sentence_id`. The notices count the notes that were split.
//!
//! A missing field may also be `null`, in CSV an empty cell or no column at all. An unknown field is refused, since it may be a misspelling.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use strum::VariantNames;

use super::error::has_extension;
use super::row::Row;
use super::source::{Rows, Source, numbered};
use super::{DataError, Dataset, ItemKind, Note, Place, notice, sentences};
use crate::record::{GoldLine, Language};
use crate::text::split_keywords;

#[cfg(test)]
mod tests;

const GOLD_FIELDS: [&str; 6] =
    ["flag", "sentence_id", "sentence", "correction", "type", "keywords"];

/// The notes of a file.
pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    let Rows { rows, notices, .. } = source.plain_rows(nest)?;
    let mut split = 0;
    let notes = numbered(rows, |row, number| {
        let note = note(row, number)?;
        split += usize::from(row.get("sentences").is_none());
        Ok(note)
    })?;
    dataset(source.stem(), &source.path, &[source], notes, split, notices)
}

/// Turns a CSV record into the form of JSON Lines: gold columns move into the field `gold`, and `sentences` and `keywords`
/// become lists.
fn nest(cells: Map<String, Value>) -> Map<String, Value> {
    let (mut fields, mut gold) = (Map::new(), Map::new());
    for (column, cell) in cells {
        let text = cell.as_str().unwrap_or_default();
        let cell = match column.as_str() {
            "sentences" => sentences::numbered_or(text, sentences::lines).into(),
            "keywords" => split_keywords(text).into(),
            _ => cell,
        };
        match GOLD_FIELDS.contains(&column.as_str()) {
            true => gold.insert(column, cell),
            false => fields.insert(column, cell),
        };
    }
    if !gold.is_empty() {
        fields.insert("gold".to_owned(), gold.into());
    }
    fields
}

/// The notes of a folder.
pub(super) fn read_folder(folder: &Path) -> Result<Dataset, DataError> {
    let (mut paths, mut others, mut folders) = (Vec::new(), 0, 0);
    for entry in fs_err::read_dir(folder)? {
        let entry = entry?;
        let path: PathBuf = entry.path();
        let is_hidden = entry.file_name().as_encoded_bytes().starts_with(b".");
        match has_extension(&path, "txt") && path.is_file() && !is_hidden {
            true => paths.push(path),
            false if path.is_dir() && !is_hidden => folders += 1,
            false => others += 1,
        }
    }
    paths.sort();
    let sources = paths.iter().map(|path| Source::read(path));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    let sources: Vec<&Source> = sources.iter().collect();
    let left_out = [
        ("folders, whose notes are left out", folders),
        ("hidden files and others than .txt, left out", others),
    ];
    let left_out = left_out.into_iter().filter(|(_, n)| *n > 0);
    let left_out = left_out.map(|(what, n)| format!("{what}: {n}"));
    let name = folder.file_stem().unwrap_or_default().to_string_lossy();
    read_texts(name.into_owned(), folder, &sources, left_out.collect())
}

/// The notes of files that hold one note each.
pub(super) fn read_texts(
    name: String,
    path: &Path,
    sources: &[&Source],
    notices: Vec<String>,
) -> Result<Dataset, DataError> {
    let mut notes = Vec::new();
    for source in sources {
        let fields = json!({"id": source.stem(), "text": source.text()});
        let row = Row::new(source.at_line(1), fields)?;
        let note = note(&row, 0)?;
        notes.push((row.place, note));
    }
    let split = notes.len();
    dataset(name, path, sources, notes, split, notices)
}

fn dataset(
    name: String,
    path: &Path,
    sources: &[&Source],
    notes: Vec<(Place, Note)>,
    split: usize,
    mut notices: Vec<String>,
) -> Result<Dataset, DataError> {
    let unscored = notes.iter().filter(|(_, note)| note.gold.is_none()).count();
    let total = notes.len();
    notices.extend(notice(
        "notes without sentences, split at their numbers, or else at line ends and after . ! ? 。 ！ ？",
        split,
        total,
    ));
    notices.extend(notice("notes without gold, not scored", unscored, total));
    Dataset::new(name, path, sources, ItemKind::Notes, notes, notices)
}

fn note(row: &Row, number: usize) -> Result<Note, DataError> {
    row.refuse_others(&["id", "text", "sentences", "language", "gold"])?;
    let id = row.optional_id("id")?.unwrap_or_else(|| number.to_string());
    let mut note = Note::new(id, row.text("text")?);
    if row.get("sentences").is_some() {
        let split = std::mem::replace(&mut note.sentences, row.texts("sentences")?);
        // Systems read one or the other. The text may number its sentences.
        let letters = |text: &str| text.split_whitespace().collect::<String>();
        let own = letters(&note.sentences.concat());
        if ![letters(&note.text), letters(&split.concat())].contains(&own) {
            return Err(row.wrong("sentences", "are not those of `text`"));
        }
    }
    if let Some(name) = row.optional_text("language")? {
        let unknown =
            || row.wrong("language", format!("is not one of {}", Language::VARIANTS.join(", ")));
        note.language = name.parse().map_err(|_| unknown())?;
    }
    if let Some(gold) = row.get("gold") {
        let gold = Row::new(row.place.clone(), gold.clone());
        let gold = gold.map_err(|_| row.wrong("gold", "must be an object"))?;
        note.gold = Some(self::gold(&gold, &note.sentences)?);
    }
    Ok(note)
}

fn gold(row: &Row, sentences: &[String]) -> Result<GoldLine, DataError> {
    row.refuse_others(&GOLD_FIELDS)?;
    if !is_wrong(row)? {
        let mut others = GOLD_FIELDS[1..].iter();
        return match others.find(|field| row.get(field).is_some()) {
            Some(field) => Err(row.wrong(field, "is given, where the flag is 0")),
            None => Ok(GoldLine::default()),
        };
    }
    let place = integer(row.require("sentence_id")?);
    let sentence_id = place.filter(|place| *place < sentences.len()).ok_or_else(|| {
        row.wrong("sentence_id", format!("is not one of 0 to {}", sentences.len() - 1))
    })?;
    let sentence = sentences[sentence_id].as_str();
    if let Some(given) = row.optional_text("sentence")?
        && !given.split_whitespace().eq(sentence.split_whitespace())
    {
        return Err(row.wrong("sentence", format!("is not sentence {sentence_id}")));
    }
    let keywords = row.get("keywords").map(|_| row.texts("keywords")).transpose()?;
    Ok(GoldLine {
        flag: true,
        sentence_id: Some(sentence_id),
        sentence: Some(sentence.to_owned()),
        correction: Some(row.text("correction")?.to_owned()),
        kind: row.optional_text("type")?.map(str::to_owned),
        keywords: keywords.unwrap_or_default(),
    })
}

fn is_wrong(row: &Row) -> Result<bool, DataError> {
    match row.require("flag")? {
        Value::Bool(flag) => Ok(*flag),
        flag => match integer(flag) {
            Some(flag @ (0 | 1)) => Ok(flag == 1),
            _ => Err(row.wrong("flag", "is not 0 or 1")),
        },
    }
}

/// A whole number, in JSON a number or in a CSV cell a text.
fn integer(value: &Value) -> Option<usize> {
    match value {
        Value::String(text) => text.parse().ok(),
        other => usize::try_from(other.as_u64()?).ok(),
    }
}
