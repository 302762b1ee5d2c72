//! The rows of a file one after another, JSON Lines or CSV with a header: none is held that does not end, and none swallows others.

use std::io::{BufRead, Error, Read};
use std::path::{Path, PathBuf};

use itertools::Itertools;

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
    /// Of CSV.
    columns: Option<Vec<String>>,
}

impl<R: BufRead> RowReader<R> {
    pub fn json_lines(path: &Path, reader: R) -> RowReader<R> {
        RowReader { path: path.to_owned(), reader, line: 0, blank_lines: 0, columns: None }
    }

    /// Of CSV with a header that has this column, if one is named.
    ///
    /// # Errors
    /// A header that cannot be read, has a column twice, or lacks the one that is named.
    pub fn table(path: &Path, reader: R, needed: Option<&str>) -> Result<Self, DataError> {
        let mut table = RowReader::json_lines(path, reader);
        let (place, columns) = table.record()?.unwrap_or_else(|| (table.place(), Vec::new()));
        if let Some(column) = columns.iter().duplicates().next() {
            return Err(place.of_field(column, "comes twice in the header"));
        }
        if let Some(column) = needed.filter(|needed| !columns.iter().any(|one| one == needed)) {
            let place = Place { position: Position::Line(1), ..place };
            return Err(place.of_field(column, "is no column of the file"));
        }
        table.columns = Some(columns);
        Ok(table)
    }

    /// The next row. Empty cells are no fields.
    ///
    /// # Errors
    /// A line that cannot be read or does not end; a row that cannot be split into fields.
    pub fn next_row(&mut self) -> Result<Option<Row>, DataError> {
        if self.columns.is_some() {
            let Some((place, cells)) = self.record()? else { return Ok(None) };
            let columns = self.columns.as_deref().unwrap_or_default();
            if cells.len() != columns.len() {
                let (found, known) = (cells.len(), columns.len());
                let problem = format!("{found} cells, where the header has {known}");
                return Err(place.refused(problem, MEND_CSV));
            }
            let cells = columns.iter().zip(cells).filter(|(_, cell)| !cell.is_empty());
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
        let rows = std::iter::from_fn(|| self.next_row().transpose());
        let rows = rows.collect::<Result<_, _>>()?;
        let blank_lines = self.blank_lines;
        let told = (blank_lines > 0).then(|| format!("blank lines: {blank_lines}"));
        Ok(Rows { rows, blank_lines, notices: told.into_iter().collect() })
    }

    /// The next record of CSV with a cell that is not empty: a line, and those after it while a quote is open.
    fn record(&mut self) -> Result<Option<(Place, Vec<String>)>, DataError> {
        let (mut first, mut record, mut quotes) = (None, String::new(), 0);
        while let Some(line) = self.line(LONGEST - record.len() as u64)? {
            let place = first.get_or_insert_with(|| self.place()).clone();
            quotes += line.matches('"').count();
            record += &line;
            if quotes % 2 == 1 {
                continue;
            }
            let text = record.strip_suffix('\n').unwrap_or(&record);
            let Some(cells) = cells(text.strip_suffix('\r').unwrap_or(text)) else {
                let problem = "a quote inside a cell is not doubled, or not closed";
                return Err(place.refused(problem, MEND_CSV));
            };
            if cells.iter().any(|cell| !cell.is_empty()) {
                return Ok(Some((place, cells)));
            }
            self.blank_lines += 1;
            (first, record) = (None, String::new());
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

/// The cells of a record, as RFC 4180 has it: a quote opens a cell, closes it, or is doubled. `None` where one stands anywhere else, for what is
/// behind it may be cells and rows.
fn cells(record: &str) -> Option<Vec<String>> {
    let mut cells = Vec::new();
    let mut rest = record;
    loop {
        let (cell, after) = match rest.strip_prefix('"') {
            None => {
                let (cell, after) = rest.split_at(rest.find([',', '"']).unwrap_or(rest.len()));
                (cell.to_owned(), after)
            }
            Some(quoted) => {
                let mut end = quoted.find('"')?;
                while quoted[end + 1..].starts_with('"') {
                    end += 2 + quoted[end + 2..].find('"')?;
                }
                (quoted[..end].replace("\"\"", "\""), &quoted[end + 1..])
            }
        };
        cells.push(cell);
        match after.strip_prefix(',') {
            Some(next) => rest = next,
            None => return after.is_empty().then_some(cells),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cells of each row of CSV under the columns a, b and c, or what is wrong.
    fn rows(text: &str) -> Result<Vec<Vec<String>>, String> {
        let text = format!("a,b,c\n{text}");
        let table = RowReader::table(Path::new("x.csv"), text.as_bytes(), None).unwrap();
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
        let (inside, open) = ("inside a cell is not doubled, or not closed", "is not closed");
        refused("1,\"Fever,x\n2,y,z\n3,\"a, b\",c\n", 2, open);
        refused("1,\"Fever,x\n2,\"\"\"Yes\"\", he said\",z\n", 2, open);
        refused("1,\"Fever,x\n2,\"y\n", 2, inside);
        refused("1,x,y\n2,\"Fever,x\n3,y,\", and z\"\n", 3, open);
        refused("1,x,y\n2,\"Fever,x\n3,y,z\n", 3, open);
        // Escaped as MySQL does it; behind a blank; in a bare cell.
        refused("1,\"say \\\"no\\\", then\",x\n", 2, inside);
        refused("1, \"a, b\"\n", 2, inside);
        refused("1,5\" tall,x\n2,6\" tall,x\n", 2, inside);
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
        let mut table = RowReader::table(&path, sparse("text\nshort\n\""), None).unwrap();
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
