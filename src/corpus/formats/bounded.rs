//! Files of rows as they are read: unpacked where they are compressed, and no row without an end.

use std::cell::Cell;
use std::io::{BufRead, BufReader, Error, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use csv::StringRecord;
use flate2::read::MultiGzDecoder;

use super::LARGEST;
use crate::corpus::{CorpusError, expect_file};
use crate::outside;

/// The most bytes of a row: a document and its other fields, escaped at most six bytes for one.
const LONGEST_ROW: u64 = 6 * LARGEST;

/// A file to be read, unpacked where it is compressed by gzip.
pub(super) fn open(path: &Path) -> Result<Box<dyn BufRead>, CorpusError> {
    expect_file(path)?;
    let file = outside::open(path)?;
    let is_compressed = path.extension().is_some_and(|ending| ending == "gz");
    Ok(match is_compressed {
        true => Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(file))),
        false => Box::new(BufReader::with_capacity(1 << 16, file)),
    })
}

/// The rows of a CSV file with a header.
pub(super) struct Table {
    reader: csv::Reader<Counted>,
    given: Rc<Cell<u64>>,
}

impl Table {
    pub fn open(path: &Path) -> Result<Table, CorpusError> {
        let given = Rc::new(Cell::new(0));
        let counted = Counted { reader: open(path)?, given: given.clone() };
        Ok(Table { reader: csv::Reader::from_reader(counted), given })
    }

    pub fn headers(&mut self) -> csv::Result<&StringRecord> {
        self.reader.headers()
    }

    /// Whether there is another row, which `row` is then.
    pub fn next_row(&mut self, row: &mut StringRecord) -> csv::Result<bool> {
        self.given.set(0);
        self.reader.read_record(row)
    }

    /// Of the next row, from 1.
    pub fn line(&self) -> usize {
        self.reader.position().line() as usize
    }
}

/// What a table is read from: an error where a row does not end. A compressed file of a megabyte may be a row of gigabytes.
struct Counted {
    reader: Box<dyn BufRead>,
    /// Bytes since the row began.
    given: Rc<Cell<u64>>,
}

impl Read for Counted {
    fn read(&mut self, bytes: &mut [u8]) -> std::io::Result<usize> {
        let read = self.reader.read(bytes)?;
        self.given.set(self.given.get() + read as u64);
        match self.given.get() > LONGEST_ROW {
            false => Ok(read),
            true => Err(Error::other(too_long())),
        }
    }
}

fn too_long() -> String {
    format!("is longer than {} MB", LONGEST_ROW >> 20)
}

/// Lines that are not blank.
pub(super) struct Lines {
    reader: Box<dyn BufRead>,
    path: PathBuf,
    line: usize,
    offset: u64,
}

impl Lines {
    pub fn open(path: &Path) -> Result<Lines, CorpusError> {
        Ok(Lines { reader: open(path)?, path: path.to_owned(), line: 0, offset: 0 })
    }

    /// Of the line last read, from 1.
    pub fn number(&self) -> usize {
        self.line
    }

    /// The next one; `None` after the last.
    pub fn next_line(&mut self) -> Result<Option<String>, CorpusError> {
        loop {
            let mut bytes = Vec::new();
            let read = (&mut self.reader).take(LONGEST_ROW).read_until(b'\n', &mut bytes);
            let read = read.map_err(|error| {
                Error::new(error.kind(), format!("{}: {error}", self.path.display()))
            })?;
            if read == 0 {
                return Ok(None);
            }
            self.line += 1;
            let start = self.offset;
            self.offset += read as u64;
            if read as u64 == LONGEST_ROW {
                return Err(self.wrong(too_long()));
            }
            if bytes.contains(&0) {
                return Err(self.wrong("has a NUL byte: it is no text".to_owned()));
            }
            let mut line = String::from_utf8(bytes).map_err(|error| CorpusError::NotUtf8 {
                path: self.path.clone(),
                byte: start + error.utf8_error().valid_up_to() as u64,
            })?;
            if self.line == 1 && line.starts_with('\u{feff}') {
                line.remove(0);
            }
            if !line.trim().is_empty() {
                return Ok(Some(line));
            }
        }
    }

    fn wrong(&self, problem: String) -> CorpusError {
        CorpusError::Row { path: self.path.clone(), line: self.line, problem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_does_not_end_is_refused_before_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.csv");
        let sparse = |start: &str| {
            std::fs::write(&path, start).unwrap();
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_len(2 << 30).unwrap();
        };
        sparse("text\nshort\n\"");
        let mut table = Table::open(&path).unwrap();
        let mut row = StringRecord::new();
        assert!(table.next_row(&mut row).unwrap());
        let error = table.next_row(&mut row).unwrap_err().to_string();
        assert_eq!(error, "is longer than 384 MB");
        sparse("x\n");
        let mut lines = Lines::open(&path).unwrap();
        assert_eq!(lines.next_line().unwrap().as_deref(), Some("x\n"));
        let error = lines.next_line().unwrap_err().to_string();
        assert!(error.ends_with("line 2: is longer than 384 MB"), "{error}");
    }
}
