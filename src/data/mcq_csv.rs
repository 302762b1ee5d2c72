//! The CSV form of the plain format: each record as the object that its JSON Lines twin would hold.

use csv::{ReaderBuilder, StringRecord, Terminator};
use serde_json::Map;

use super::DataError;
use super::row::Row;
use super::source::{Rows, Source};

const LETTERS: [&str; 10] = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];

/// The records of a CSV file with a header.
///
/// # Errors
///
/// An unknown or repeated column, a record with more or fewer cells than the header, a quote that is not closed.
pub(super) fn rows(source: &Source) -> Result<Rows, DataError> {
    let (records, blank_lines) = records(source)?;
    let mut records = records.into_iter();
    let Some((header_line, header)) = records.next() else {
        return Ok(Rows {
            rows: Vec::new(),
            blank_lines,
        });
    };
    check_header(source, header_line, &header)?;
    let mut rows = Vec::new();
    for (line, record) in records {
        if record.len() != header.len() {
            let problem = format!(
                "{} cells, where the header has {}",
                record.len(),
                header.len()
            );
            return Err(DataError::Syntax {
                place: source.at_line(line),
                problem,
            });
        }
        rows.push(row(source, line, &header, &record)?);
    }
    Ok(Rows { rows, blank_lines })
}

/// The records with the lines that they begin on, and the number of those that are blank or have empty cells alone.
fn records(source: &Source) -> Result<(Vec<(usize, StringRecord)>, usize), DataError> {
    let text = source.text().replace("\r\n", "\n");
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
        if record.iter().all(str::is_empty) {
            blank_lines += 1;
        } else {
            records.push((line, record));
        }
    }
}

fn check_header(source: &Source, line: usize, header: &StringRecord) -> Result<(), DataError> {
    let wrong = |column: &str, problem: &str| DataError::Field {
        place: source.at_line(line),
        field: column.to_owned(),
        problem: problem.to_owned(),
    };
    for (index, column) in header.iter().enumerate() {
        if !LETTERS.contains(&column) && !["id", "question", "answer", "image"].contains(&column) {
            return Err(wrong(
                column,
                "is unknown; the columns are id, question, A, B, … up to J, answer, image",
            ));
        }
        if header.iter().take(index).any(|earlier| earlier == column) {
            return Err(wrong(column, "comes twice in the header"));
        }
    }
    Ok(())
}

/// The record as an object in which empty cells are absent; its cells are as many as the header's.
fn row(
    source: &Source,
    line: usize,
    header: &StringRecord,
    record: &StringRecord,
) -> Result<Row, DataError> {
    let (mut fields, mut options) = (Map::new(), Map::new());
    for (column, cell) in header.iter().zip(record) {
        let cells = if LETTERS.contains(&column) {
            &mut options
        } else {
            &mut fields
        };
        if !cell.is_empty() {
            cells.insert(column.to_owned(), cell.into());
        }
    }
    fields.insert("options".to_owned(), options.into());
    Row::new(source.at_line(line), fields.into())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Dataset, Format, read};
    use super::*;

    fn parse(text: &str) -> Result<Dataset, DataError> {
        read(
            Source::new(Path::new("ward.csv"), text.as_bytes().to_vec())?,
            Format::Mcq,
        )
    }

    fn problem(text: &str) -> String {
        parse(text).unwrap_err().to_string()
    }

    #[test]
    fn reads_the_documented_example() {
        let text = include_str!("mcq.rs");
        let block = text
            .split("//! ```")
            .find_map(|block| block.strip_prefix("csv\n"))
            .unwrap();
        let dataset = parse(&block.replace("//! ", "")).unwrap();
        let [first, second] = [dataset.questions()[0], dataset.questions()[1]];
        assert_eq!(
            (first.id.as_str(), first.gold, first.options.len()),
            ("ward-7", Some('A'), 2)
        );
        assert_eq!(
            (second.id.as_str(), second.gold, second.option('C')),
            ("2", None, Some("Clavicle"))
        );
    }

    #[test]
    fn reads_quoted_cells_and_numbers_lines_as_an_editor_does() {
        let text =
            "\u{feff}\r\nquestion,A,B\r\n\"say \"\"q\"\",\r\ntwice\",x,y\r\n\r\n,,\r\nr,x\r\n";
        assert_eq!(problem(text), "ward.csv:7: 2 cells, where the header has 3");
        let dataset = parse(&text.replace("r,x", "r,x,y")).unwrap();
        assert_eq!(dataset.questions()[0].question, "say \"q\",\ntwice");
        assert_eq!(dataset.notices[0], "blank lines: 3");
    }

    #[test]
    fn refuses_bad_headers() {
        let cases = [
            ("question,A,B,A\n", "`A` comes twice in the header"),
            (
                "question,A,B,gold\n",
                "`gold` is unknown; the columns are id, question, A, B, … up to J, answer, image",
            ),
        ];
        for (text, expected) in cases {
            assert_eq!(problem(text), format!("ward.csv:1: field {expected}"));
        }
        let cases = [
            (
                "question,A,B,D\nq,x,y,z",
                "`options` has an option \"D\" where C is due",
            ),
            (
                "question,A\nq,x",
                "`options` must hold 2 to 10 options, not 1",
            ),
            ("A,B\nx,y", "`question` is missing"),
        ];
        for (text, expected) in cases {
            assert_eq!(problem(text), format!("ward.csv:2: field {expected}"));
        }
    }

    #[test]
    fn refuses_bad_records() {
        let cases = [
            ("1,q,x,y,z\n", "2: 5 cells, where the header has 6"),
            ("1,q,x,y,z,A,\n", "2: 7 cells, where the header has 6"),
            (
                "1,q,x,,z,A\n",
                "2: field `options` has an option \"C\" where B is due",
            ),
            (
                "1,q,x,,,A\n",
                "2: field `options` must hold 2 to 10 options, not 1",
            ),
            ("1,,x,y,z,A\n", "2: field `question` is missing"),
            (
                "1,q,x,y,,C\n",
                "2: field `answer` is \"C\", not one of A, B",
            ),
            (
                "1,q,x,y,z,A\n1,q,x,y,z,A\n",
                "3: the id `1` came before, in line 2",
            ),
            ("1,q,x,y,z,A\n2,q,x,y,z,\"A\n\n", "3: a quote is not closed"),
        ];
        for (text, expected) in cases {
            assert_eq!(
                problem(&format!("id,question,A,B,C,answer\n{text}")),
                format!("ward.csv:{expected}")
            );
        }
    }

    #[test]
    fn refuses_a_file_without_records() {
        assert_eq!(problem(""), "ward.csv: no questions");
        assert_eq!(problem("question,A,B\n"), "ward.csv: no questions");
    }
}
