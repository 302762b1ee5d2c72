//! Reads a CSV file with a header: each record becomes an object without its empty cells.

use csv::{ReaderBuilder, StringRecord, Terminator};
use serde_json::{Map, Value};

use super::DataError;
use super::row::Row;
use super::source::{Rows, Source};

/// The records of a CSV file; a line with only empty cells counts as blank.
///
/// # Errors
/// A duplicate column; a quote that is not closed. A record with more or fewer cells than the header is an error among
/// the rows.
pub(super) fn read(source: &Source) -> Result<Rows, DataError> {
    let (records, blank_lines) = records(source)?;
    let mut rows = Vec::new();
    let mut header: Option<(Row, StringRecord)> = None;
    for (line, record) in records {
        let place = source.at_line(line);
        let Some((_, columns)) = &header else {
            let columns = record.iter().map(|column| (column.to_owned(), Value::Null));
            let row = Row::new(place, columns.collect::<Map<_, _>>().into())?;
            if row.fields.len() < record.len() {
                let mut columns = record.iter().enumerate();
                let twice =
                    columns.find(|(at, column)| record.iter().take(*at).any(|c| c == *column));
                let twice = twice.map_or("", |(_, column)| column);
                return Err(row.wrong(twice, "comes twice in the header"));
            }
            header = Some((row, record));
            continue;
        };
        if record.len() != columns.len() {
            let (cells, columns) = (record.len(), columns.len());
            let problem = format!("{cells} cells, where the header has {columns}");
            rows.push(Err(DataError::Syntax { place, problem }));
            continue;
        }
        let cells = columns.iter().zip(&record);
        let cells: Map<String, Value> = cells
            .filter(|(_, cell)| !cell.is_empty())
            .map(|(column, cell)| (column.to_owned(), cell.into()))
            .collect();
        rows.push(Row::new(place, cells.into()));
    }
    Ok(Rows { header: header.map(|(row, _)| row), rows, blank_lines })
}

/// The records with the numbers of their first lines, and the number of blank lines.
fn records(source: &Source) -> Result<(Vec<(usize, StringRecord)>, usize), DataError> {
    let text = source.text();
    let mut reader = ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .terminator(Terminator::Any(b'\n'))
        .from_reader(text.as_bytes());
    let (mut records, mut blank_lines) = (Vec::new(), 0);
    loop {
        let start = reader.position().clone();
        let mut record = StringRecord::new();
        let found = reader.read_record(&mut record);
        // The reader skips blank lines and lets an unclosed quote run to the end of the file: the raw text shows both.
        let raw = &text[start.byte() as usize..reader.position().byte() as usize];
        let blank = raw.len() - raw.trim_start_matches('\n').len();
        let line = start.line() as usize + blank;
        let wrong = |problem: String| DataError::Syntax { place: source.at_line(line), problem };
        blank_lines += blank;
        if !found.map_err(|error| wrong(error.to_string()))? {
            return Ok((records, blank_lines));
        }
        if raw.matches('"').count() % 2 == 1 {
            return Err(wrong("a quote is not closed".to_owned()));
        }
        if raw.trim_end_matches('\n').ends_with('\r') {
            record = without_last_character(&record);
        }
        if record.iter().all(str::is_empty) {
            blank_lines += 1;
        } else {
            records.push((line, record));
        }
    }
}

/// Removes the `\r` of the line end `\r\n`, which the reader keeps in the last cell.
fn without_last_character(record: &StringRecord) -> StringRecord {
    let last = record.len().saturating_sub(1);
    let cells = record.iter().enumerate().map(|(index, cell)| {
        let stripped = cell.strip_suffix('\r').filter(|_| index == last);
        stripped.unwrap_or(cell)
    });
    cells.collect()
}
