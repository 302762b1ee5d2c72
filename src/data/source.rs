//! A data file, read whole: its text, its hash, its lines, and the objects that they hold.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use super::row::Row;
use super::{DataError, Place, Position, json};
use crate::digest::hex;

pub(super) struct Source {
    pub path: PathBuf,
    content: String,
}

/// The records of a file, and how many of its lines hold none.
pub(super) struct Rows {
    pub rows: Vec<Row>,
    pub blank_lines: usize,
}

impl Source {
    pub fn read(path: &Path) -> Result<Self, DataError> {
        Self::new(path, fs_err::read(path)?)
    }

    pub fn new(path: &Path, bytes: Vec<u8>) -> Result<Self, DataError> {
        let path = path.to_owned();
        match String::from_utf8(bytes) {
            Ok(content) => Ok(Self { path, content }),
            Err(error) => {
                let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
                let line = 1 + valid.iter().filter(|&&byte| byte == b'\n').count();
                Err(DataError::Encoding(Place {
                    path,
                    position: Position::Line(line),
                }))
            }
        }
    }

    /// Without the byte order mark that some spreadsheets put in front.
    pub fn text(&self) -> &str {
        self.content
            .strip_prefix('\u{feff}')
            .unwrap_or(&self.content)
    }

    pub fn at_line(&self, line: usize) -> Place {
        Place {
            path: self.path.clone(),
            position: Position::Line(line),
        }
    }

    pub fn at_record(&self, record: &str) -> Place {
        Place {
            path: self.path.clone(),
            position: Position::Record(record.to_owned()),
        }
    }

    /// Lines that end in `\n` or `\r\n`, numbered from 1, without their ends.
    pub fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        (1..).zip(self.text().lines())
    }

    /// The records of JSON Lines.
    pub fn rows(&self) -> Result<Rows, DataError> {
        let (mut rows, mut blank_lines) = (Vec::new(), 0);
        for (line, text) in self.lines() {
            if text.trim().is_empty() {
                blank_lines += 1;
                continue;
            }
            let value = json::parse(text).map_err(|error| DataError::Syntax {
                place: self.at_line(line),
                problem: format!("{}, at column {}", without_position(&error), error.column()),
            })?;
            rows.push(Row::new(self.at_line(line), value)?);
        }
        Ok(Rows { rows, blank_lines })
    }

    /// The members of a file that is one JSON object.
    pub fn members(&self) -> Result<Map<String, Value>, DataError> {
        let value = json::parse(self.text()).map_err(|error| DataError::Syntax {
            place: self.at_line(error.line()),
            problem: format!("{}, at column {}", without_position(&error), error.column()),
        })?;
        match value {
            Value::Object(members) => Ok(members),
            _ => Err(DataError::Syntax {
                place: self.at_line(1),
                problem: "the file is not one JSON object".to_owned(),
            }),
        }
    }
}

impl Rows {
    pub fn notices(&self) -> Vec<String> {
        match self.blank_lines {
            0 => Vec::new(),
            count => vec![format!("blank lines: {count}")],
        }
    }
}

/// In hexadecimal, over the bytes of the files one after the other.
pub(super) fn sha256(sources: &[&Source]) -> String {
    let mut hasher = Sha256::new();
    for source in sources {
        hasher.update(source.content.as_bytes());
    }
    hex(&hasher.finalize())
}

/// serde_json's message less its ` at line 1 column 2`, whose line counts from the wrong start in JSON Lines.
fn without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let end = message.rfind(" at line ").unwrap_or(message.len());
    message[..end].to_owned()
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
    fn accepts_a_byte_order_mark_and_crlf_and_counts_blank_lines() {
        let rows = source(b"\xef\xbb\xbf{}\r\n\r\n{}\r\n  \n")
            .unwrap()
            .rows()
            .unwrap();
        assert_eq!(rows.rows.len(), 2);
        assert_eq!(rows.rows[1].place.to_string(), "a.jsonl:3");
        assert_eq!(rows.notices(), ["blank lines: 2"]);
    }

    #[test]
    fn refuses_lines_that_are_no_objects() {
        let problem = |text: &str| {
            source(text.as_bytes())
                .unwrap()
                .rows()
                .err()
                .unwrap()
                .to_string()
        };
        assert_eq!(
            problem("{}\n[1]\n"),
            "a.jsonl:2: an object is expected, not a list"
        );
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
