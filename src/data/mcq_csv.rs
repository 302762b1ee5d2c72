//! The CSV form of the plain format for questions: each record as the object that its JSON Lines twin would hold.

use serde_json::{Map, Value};

use super::DataError;
use super::row::Row;
use super::source::{Rows, Source};
use super::table::Table;

const LETTERS: [&str; 10] = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];

/// The records of a CSV file with a header, in which `\r\n` counts as `\n`.
///
/// # Errors
///
/// As [`Table::read`]; an unknown column.
pub(super) fn rows(source: &Source) -> Result<Rows, DataError> {
    let table = Table::read(source)?;
    let is_known = |column: &str| {
        LETTERS.contains(&column) || ["id", "question", "answer", "image"].contains(&column)
    };
    if let Some(column) = table.columns.iter().find(|column| !is_known(column)) {
        let problem = "is unknown; the columns are id, question, A, B, … up to J, answer, image";
        return Err(table.wrong(source, column, problem));
    }
    let rows = table.rows(source)?.into_iter().map(with_options);
    Ok(Rows {
        rows: rows.collect::<Result<_, _>>()?,
        blank_lines: table.blank_lines,
    })
}

/// The row with its lettered cells as the one field `options`.
fn with_options(row: Row) -> Result<Row, DataError> {
    let (mut fields, mut options) = (Map::new(), Map::new());
    for (column, cell) in row.fields {
        let cell = match cell {
            Value::String(text) => text.replace("\r\n", "\n").into(),
            other => other,
        };
        let cells = if LETTERS.contains(&column.as_str()) {
            &mut options
        } else {
            &mut fields
        };
        cells.insert(column, cell);
    }
    fields.insert("options".to_owned(), options.into());
    Row::new(row.place, fields.into())
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
