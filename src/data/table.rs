//! A CSV file with a header: each record as the object that its JSON Lines twin would hold.

use csv::{ReaderBuilder, StringRecord, Terminator};
use serde_json::{Map, Value};

use super::DataError;
use super::row::Row;
use super::source::Source;

pub(super) struct Table {
    /// No name twice.
    pub columns: Vec<String>,
    header_line: usize,
    /// As many cells each as there are columns, with the lines that they begin on.
    records: Vec<(usize, StringRecord)>,
    /// Lines that are blank or have empty cells alone.
    pub blank_lines: usize,
}

impl Table {
    /// # Errors
    ///
    /// A repeated column, a record with more or fewer cells than the header, a quote that is not closed.
    pub fn read(source: &Source) -> Result<Table, DataError> {
        let (mut records, blank_lines) = records(source)?;
        if records.is_empty() {
            return Ok(Table {
                columns: Vec::new(),
                header_line: 1,
                records,
                blank_lines,
            });
        }
        let (header_line, header) = records.remove(0);
        let columns: Vec<String> = header.iter().map(str::to_owned).collect();
        for (index, column) in columns.iter().enumerate() {
            if columns[..index].contains(column) {
                return Err(DataError::Field {
                    place: source.at_line(header_line),
                    field: column.clone(),
                    problem: "comes twice in the header".to_owned(),
                });
            }
        }
        for (line, record) in &records {
            if record.len() != columns.len() {
                let problem = format!(
                    "{} cells, where the header has {}",
                    record.len(),
                    columns.len()
                );
                return Err(DataError::Syntax {
                    place: source.at_line(*line),
                    problem,
                });
            }
        }
        Ok(Table {
            columns,
            header_line,
            records,
            blank_lines,
        })
    }

    /// The error for a column; the message reads on from its name.
    pub fn wrong(&self, source: &Source, column: &str, problem: &str) -> DataError {
        DataError::Field {
            place: source.at_line(self.header_line),
            field: column.to_owned(),
            problem: problem.to_owned(),
        }
    }

    /// The records as objects in which empty cells are absent.
    pub fn rows(&self, source: &Source) -> Result<Vec<Row>, DataError> {
        let rows = self.records.iter().map(|(line, record)| {
            let cells = self.columns.iter().zip(record);
            let cells: Map<String, Value> = cells
                .filter(|(_, cell)| !cell.is_empty())
                .map(|(column, cell)| (column.clone(), cell.into()))
                .collect();
            Row::new(source.at_line(*line), cells.into())
        });
        rows.collect()
    }
}

/// The records with the lines that they begin on, and the number of those that are blank or have empty cells alone.
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
        // The reader steps over blank lines and lets an open quote run to the end; the raw text shows both.
        let raw = &text[start.byte() as usize..reader.position().byte() as usize];
        let blank = raw.len() - raw.trim_start_matches('\n').len();
        let line = start.line() as usize + blank;
        let wrong = |problem: String| DataError::Syntax {
            place: source.at_line(line),
            problem,
        };
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

/// Of a line that ends in `\r\n` the `\r` is read as part of the last cell; those inside quotes stay.
fn without_last_character(record: &StringRecord) -> StringRecord {
    let last = record.len().saturating_sub(1);
    let cells = record.iter().enumerate().map(|(index, cell)| {
        let stripped = cell.strip_suffix('\r').filter(|_| index == last);
        stripped.unwrap_or(cell)
    });
    cells.collect()
}
