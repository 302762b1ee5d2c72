//! The rows of a file one after another, JSON Lines or CSV with a header: none is held that does not end, and none swallows others.

use std::io::{BufRead, Error, Read};
use std::mem::take;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::error::{MEND, MEND_CSV};
use super::row::Row;
use super::source::Rows;
use super::{DataError, Place, Position, json};

/// The most bytes of a row: a document of 64 MB and its other fields, escaped at most six bytes for one.
const LONGEST: u64 = 384 << 20;

pub struct RowReader<R> {
    path: PathBuf,
    reader: R,
    /// Lines read.
    line: usize,
    blank_lines: usize,
    is_table: bool,
    header: Option<Row>,
}

/// Where in a cell of CSV a character stands.
#[derive(Clone, Copy, PartialEq)]
enum At {
    Start,
    Bare,
    Quoted,
    /// Behind a quote that ends the cell, or is the first of two that stand for one.
    Closed,
}

impl<R: BufRead> RowReader<R> {
    pub fn json_lines(path: &Path, reader: R) -> RowReader<R> {
        let path = path.to_owned();
        RowReader { path, reader, line: 0, blank_lines: 0, is_table: false, header: None }
    }

    /// Of CSV with a header.
    ///
    /// # Errors
    /// A header that cannot be read, or has a column twice.
    pub fn table(path: &Path, reader: R) -> Result<RowReader<R>, DataError> {
        let mut table = RowReader { is_table: true, ..RowReader::json_lines(path, reader) };
        if let Some((place, columns)) = table.record()? {
            let mut header = Row { place, fields: Map::new() };
            for column in columns {
                if header.fields.insert(column.clone(), Value::Null).is_some() {
                    return Err(header.wrong(&column, "comes twice in the header"));
                }
            }
            table.header = Some(header);
        }
        Ok(table)
    }

    /// The columns of a CSV file, as fields whose value is `null`.
    pub fn header(&self) -> Option<&Row> {
        self.header.as_ref()
    }

    /// The next row. Empty cells are no fields.
    ///
    /// # Errors
    /// A line that cannot be read or does not end; a row that cannot be split into fields.
    pub fn next_row(&mut self) -> Result<Option<Row>, DataError> {
        if self.is_table {
            let Some((place, cells)) = self.record()? else { return Ok(None) };
            let columns = self.header.iter().flat_map(|header| header.fields.keys());
            let count = columns.clone().count();
            if cells.len() != count {
                let problem = format!("{} cells, where the header has {count}", cells.len());
                return Err(place.refused(problem, MEND_CSV));
            }
            let cells = columns.zip(cells).filter(|(_, cell)| !cell.is_empty());
            let fields = cells.map(|(column, cell)| (column.clone(), cell.into())).collect();
            return Ok(Some(Row { place, fields }));
        }
        while let Some(line) = self.line(LONGEST)? {
            if line.trim().is_empty() {
                self.blank_lines += 1;
                continue;
            }
            let place = self.place();
            return match json::parse(line.trim_end_matches(['\r', '\n'])) {
                Ok(value) => Row::new(place, value).map(Some),
                Err(error) => Err(json::refused(place, &error)),
            };
        }
        Ok(None)
    }

    /// Every row.
    ///
    /// # Errors
    /// As of [`Self::next_row`].
    pub(super) fn all(mut self) -> Result<Rows, DataError> {
        let mut rows = Vec::new();
        while let Some(row) = self.next_row()? {
            rows.push(row);
        }
        Ok(Rows { header: self.header, rows, blank_lines: self.blank_lines })
    }

    /// The next record of CSV with a cell that is not empty, as RFC 4180 has it: a quote opens a cell, closes it, or is doubled. One
    /// anywhere else is refused, for what is behind it may be cells and rows.
    fn record(&mut self) -> Result<Option<(Place, Vec<String>)>, DataError> {
        let (mut cells, mut cell, mut at) = (Vec::new(), String::new(), At::Start);
        let (mut first, mut length) = (None, 0);
        while let Some(line) = self.line(LONGEST - length)? {
            let place = first.get_or_insert_with(|| self.place()).clone();
            length += line.len() as u64;
            let text = line.strip_suffix('\n').unwrap_or(&line);
            let text = text.strip_suffix('\r').unwrap_or(text);
            for character in text.chars() {
                at = match (at, character) {
                    (At::Quoted, '"') => At::Closed,
                    (At::Start, '"') => At::Quoted,
                    (At::Quoted, _) | (At::Closed, '"') => {
                        cell.push(character);
                        At::Quoted
                    }
                    (_, ',') => {
                        cells.push(take(&mut cell));
                        At::Start
                    }
                    (At::Closed, _) | (_, '"') => {
                        let problem = "a quote inside a cell is not doubled, or not closed";
                        return Err(place.refused(problem, MEND_CSV));
                    }
                    _ => {
                        cell.push(character);
                        At::Bare
                    }
                };
            }
            if at == At::Quoted {
                cell.push_str(&line[text.len()..]);
                continue;
            }
            cells.push(take(&mut cell));
            if cells.iter().any(|cell| !cell.is_empty()) {
                return Ok(Some((place, cells)));
            }
            self.blank_lines += 1;
            (cells, at, first, length) = (Vec::new(), At::Start, None, 0);
        }
        match first {
            None => Ok(None),
            Some(place) => Err(place.refused("a quote is not closed", MEND_CSV)),
        }
    }

    /// The next line with its end, without a byte order mark.
    fn line(&mut self, longest: u64) -> Result<Option<String>, DataError> {
        let mut bytes = Vec::new();
        let read = self.reader.by_ref().take(longest).read_until(b'\n', &mut bytes);
        let read = read.map_err(|error| {
            Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })?;
        if read == 0 {
            return Ok(None);
        }
        self.line += 1;
        if read as u64 == longest {
            let problem = format!("is longer than {} MB", LONGEST >> 20);
            return Err(self.place().refused(problem, MEND));
        }
        let mut line = String::from_utf8(bytes).map_err(|_| DataError::Encoding(self.place()))?;
        if self.line == 1 && line.starts_with('\u{feff}') {
            line.remove(0);
        }
        Ok(Some(line))
    }

    /// Of the line last read.
    fn place(&self) -> Place {
        Place { path: self.path.clone(), position: Position::Line(self.line) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of each row of CSV under the columns a, b and c, or what is wrong.
    fn rows(text: &str) -> Result<Vec<Vec<String>>, String> {
        let text = format!("a,b,c\n{text}");
        let table = RowReader::table(Path::new("x.csv"), text.as_bytes()).unwrap();
        let rows = table.all().map_err(|error| error.to_string())?.rows.into_iter();
        let cells =
            |row: Row| row.fields.values().map(|cell| cell.as_str().unwrap().to_owned()).collect();
        Ok(rows.map(cells).collect())
    }

    #[test]
    fn quoted_cells_hold_commas_quotes_and_lines() {
        let text = "1,\"a, \"\"b\"\"\r\n\r\nc\",3\r\n\"\",\"\"\"\",x y\n,\"\n\",";
        assert_eq!(
            rows(text).unwrap(),
            [&["1", "a, \"b\"\r\n\r\nc", "3"][..], &["\"", "x y"], &["\n"]]
        );
    }

    /// Otherwise a cell that is not closed swallows the rows up to the next quote, and a file that came of other rules is read as another.
    #[test]
    fn a_quote_that_csv_does_not_have_is_refused_at_the_row_that_has_it() {
        let refused = |text: &str, line: usize, problem: &str| {
            let said = rows(text).unwrap_err();
            assert_eq!(said, format!("x.csv:{line}: a quote {problem}"), "{text}");
        };
        let inside = "inside a cell is not doubled, or not closed";
        refused("1,\"Fever,x\n2,y,z\n3,\"a, b\",c\n", 2, inside);
        refused("1,\"Fever,x\n2,\"\"\"Yes\"\", he said\",z\n", 2, inside);
        refused("1,x,y\n2,\"Fever,x\n3,y,\", and z\"\n", 3, inside);
        refused("1,x,y\n2,\"Fever,x\n3,y,z\n", 3, "is not closed");
        // Escaped as MySQL does it; behind a blank; in a bare cell.
        refused("1,\"say \\\"no\\\", then\",x\n", 2, inside);
        refused("1, \"a, b\"\n", 2, inside);
        refused("1,5\" tall,x\n", 2, inside);
    }

    #[test]
    fn a_row_that_does_not_end_is_refused_before_it_is_held() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let sparse = |start: &str| {
            std::fs::write(&path, start).unwrap();
            let file = std::fs::File::options().append(true).open(&path).unwrap();
            file.set_len(2 << 30).unwrap();
            std::io::BufReader::new(std::fs::File::open(&path).unwrap())
        };
        let mut table = RowReader::table(&path, sparse("text\nshort\n\"")).unwrap();
        assert!(table.next_row().unwrap().is_some());
        let error = table.next_row().err().unwrap().to_string();
        assert!(error.ends_with("a:3: is longer than 384 MB"), "{error}");
        let mut lines = RowReader::json_lines(&path, sparse("{}\n"));
        assert!(lines.next_row().unwrap().is_some());
        assert!(
            lines.next_row().err().unwrap().to_string().ends_with("a:2: is longer than 384 MB")
        );
    }
}
