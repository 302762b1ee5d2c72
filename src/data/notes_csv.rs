//! The CSV form of the plain format for notes: each record as the object that its JSON Lines twin would hold.

use serde_json::Map;

use super::notes::GOLD_FIELDS;
use super::row::Row;
use super::source::{Rows, Source};
use super::table::Table;
use super::{DataError, sentences};
use crate::text::split_keywords;

/// The records of a CSV file with a header.
///
/// # Errors
///
/// As [`Table::read`]; an unknown column.
pub(super) fn rows(source: &Source) -> Result<Rows, DataError> {
    let table = Table::read(source)?;
    let columns = ["id", "text", "sentences", "language"];
    let columns = [&columns[..], &GOLD_FIELDS].concat();
    let mut unknown = table.columns.iter();
    if let Some(column) = unknown.find(|column| !columns.contains(&column.as_str())) {
        let problem = format!("is unknown; the columns are {}", columns.join(", "));
        return Err(table.wrong(source, column, &problem));
    }
    let mut rows = Vec::new();
    for row in table.rows(source)? {
        let (mut fields, mut gold) = (Map::new(), Map::new());
        for (column, cell) in row.fields {
            let text = cell.as_str().unwrap_or_default();
            let cell = match column.as_str() {
                "sentences" => lines(text).into(),
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
        rows.push(Row::new(row.place, fields.into())?);
    }
    Ok(Rows {
        rows,
        blank_lines: table.blank_lines,
    })
}

/// The sentences of a cell: at their numbers, or else one a line.
fn lines(cell: &str) -> Vec<&str> {
    match sentences::numbered(cell) {
        numbered if numbered.is_empty() => {
            let lines = cell.lines().map(str::trim);
            lines.filter(|line| !line.is_empty()).collect()
        }
        numbered => numbered,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::{Format, read};
    use super::*;

    #[test]
    fn refuses_bad_tables() {
        let problem = |text: &str| {
            let source = Source::new(Path::new("ward.csv"), text.as_bytes().to_vec()).unwrap();
            read(source, Format::Notes).unwrap_err().to_string()
        };
        let known = "id, text, sentences, language, flag, sentence_id, sentence, correction, type, keywords";
        assert_eq!(
            problem("id,note\n1,a\n"),
            format!("ward.csv:1: field `note` is unknown; the columns are {known}")
        );
        assert_eq!(
            problem("text,flag\na,x\n"),
            "ward.csv:2: field `flag` is \"x\", not 0 or 1"
        );
        assert_eq!(
            problem("text,correction\na,x\n"),
            "ward.csv:2: field `flag` is missing"
        );
        assert_eq!(
            problem("id,text\n1,a\n1,b\n"),
            "ward.csv:3: the id `1` came before, in line 2"
        );
        assert_eq!(
            problem("text,id\n\"a\n"),
            "ward.csv:2: a quote is not closed"
        );
        assert_eq!(problem("text,id\n"), "ward.csv: no notes");
    }
}
