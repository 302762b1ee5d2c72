//! A data file in memory: its text, its hash, its lines, and their records.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::has_extension;
use super::row::Row;
use super::row_reader::RowReader;
use super::{DataError, Place, Position, json};
use crate::digest::Sum;
use crate::outside;

pub(super) struct Source {
    pub path: PathBuf,
    content: String,
}

/// The records of a file.
pub(super) struct Rows {
    pub rows: Vec<Row>,
    /// The number of lines without a record.
    pub blank_lines: usize,
    /// What was left out, with counts.
    pub notices: Vec<String>,
}

/// What each row holds, with its place; `read` is told the row's number, from 1.
pub(super) fn numbered<T>(
    rows: Vec<Row>,
    mut read: impl FnMut(&Row, usize) -> Result<T, DataError>,
) -> Result<Vec<(Place, T)>, DataError> {
    let numbered = (1_usize..).zip(rows).map(|(number, row)| {
        let found = read(&row, number)?;
        Ok((row.place, found))
    });
    numbered.collect()
}

impl Source {
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::new(path, outside::file(path)?)
    }

    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<Self, DataError> {
        let path = path.to_owned();
        match String::from_utf8(bytes) {
            Ok(content) => Ok(Self { path, content }),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
                Err(DataError::Encoding(Place { path, position: Position::Line(line) }))
            }
        }
    }

    /// The content without the byte order mark that some spreadsheets write.
    pub fn text(&self) -> &str {
        self.content.strip_prefix('\u{feff}').unwrap_or(&self.content)
    }

    pub fn at_line(&self, line: usize) -> Place {
        Place { path: self.path.clone(), position: Position::Line(line) }
    }

    pub fn at_record(&self, record: &str) -> Place {
        Place { path: self.path.clone(), position: Position::Record(record.to_owned()) }
    }

    /// The lines, numbered from 1, without their ends `\n` or `\r\n`.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text().lines())
    }

    /// The file's name without its extension.
    pub fn stem(&self) -> String {
        let stem = self.path.file_stem().unwrap_or_default();
        stem.to_string_lossy().into_owned()
    }

    /// The records of JSON Lines.
    pub fn json_lines(&self) -> Result<Rows, DataError> {
        RowReader::json_lines(&self.path, self.text().as_bytes()).all()
    }

    /// The records of a CSV file; a line with only empty cells counts as blank.
    pub fn table(&self) -> Result<Rows, DataError> {
        RowReader::table(&self.path, self.text().as_bytes(), None)?.all()
    }

    /// The records of a plain format: JSON Lines, or CSV, whose cells `nest` turns into the fields of the JSON Lines form.
    pub fn plain_rows(
        &self,
        nest: fn(Map<String, Value>) -> Map<String, Value>,
    ) -> Result<Rows, DataError> {
        if !has_extension(&self.path, "csv") {
            return self.json_lines();
        }
        let mut found = self.table()?;
        for row in &mut found.rows {
            row.fields = nest(std::mem::take(&mut row.fields));
        }
        Ok(found)
    }

    /// The members of a file that is one JSON object.
    pub fn members(&self) -> Result<Map<String, Value>, DataError> {
        let value = json::parse(self.text())
            .map_err(|error| json::refused(self.at_line(error.line()), &error))?;
        Ok(Row::new(self.at_line(1), value)?.fields)
    }
}

/// The SHA-256 of the concatenated files, in hexadecimal.
pub(super) fn sha256(sources: &[&Source]) -> String {
    let mut sum = Sum::default();
    sources.iter().for_each(|source| sum.update(source.content.as_bytes()));
    sum.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(bytes: &[u8]) -> Result<Source, DataError> {
        Source::new(Path::new("a.jsonl"), bytes.to_vec())
    }

    #[test]
    fn names_the_line_that_is_not_utf8() {
        let error = source(b"{}\n{}\n\"\xff\"\n").err().unwrap();
        assert_eq!(error.to_string(), "a.jsonl:3: not valid UTF-8");
    }

    #[test]
    fn a_pipe_is_refused_by_name_and_not_waited_for() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.csv");
        mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
        let error = Source::read(&path).err().unwrap().to_string();
        assert!(error.contains("notes.csv: it is no file"), "{error}");
        let missing = Source::read(&folder.path().join("none.csv")).err().unwrap().to_string();
        assert!(missing.starts_with("failed to open file"), "{missing}");
    }

    #[test]
    fn accepts_a_byte_order_mark_and_crlf_and_counts_blank_lines() {
        let rows = source(b"\xef\xbb\xbf{}\r\n\r\n{}\r\n  \n").unwrap().json_lines().unwrap();
        assert_eq!(rows.rows.len(), 2);
        assert_eq!(rows.rows[1].place.to_string(), "a.jsonl:3");
        assert_eq!(rows.notices, ["blank lines: 2"]);
    }

    #[test]
    fn refuses_lines_that_are_no_objects() {
        let problem =
            |text: &str| source(text.as_bytes()).unwrap().json_lines().err().unwrap().to_string();
        assert_eq!(problem("{}\n[1]\n"), "a.jsonl:2: an object is expected");
        assert_eq!(
            problem("{}\n{\"a\": \"b"),
            "a.jsonl:2: EOF while parsing a string, at column 8"
        );
        assert_eq!(
            problem("{\"a\": 1, \"a\": 2}"),
            "a.jsonl:1: the key `a` comes twice, at column 12"
        );
    }

    #[test]
    fn hashes_the_bytes_of_all_files_in_order() {
        let (first, second) = (source(b"\xef\xbb\xbfa").unwrap(), source(b"bc").unwrap());
        let whole = source(b"\xef\xbb\xbfabc").unwrap();
        assert_eq!(sha256(&[&first, &second]), sha256(&[&whole]));
        let abc = source(b"abc").unwrap();
        assert_eq!(
            sha256(&[&abc]),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
        );
    }
}
