//! The plain format for the user's own questions, JSON Lines, or CSV in a file whose name ends in `.csv`: `docs/running.md` says what a line has.
//!
//! A missing field may also be `null`, in CSV an empty cell or no column at all. An unknown field is refused, since it may be a misspelling.

use serde_json::{Map, Value};

use super::row::Row;
use super::source::Source;
use super::{DataError, Dataset, Question};

#[cfg(test)]
mod tests;

pub(super) fn read(source: &Source) -> Result<Dataset, DataError> {
    Dataset::of_questions(source.stem(), source, source.plain_rows(nest)?, question)
}

/// Moves a CSV record's lettered cells into the field `options`; `\r\n` in a cell becomes `\n`.
fn nest(cells: Map<String, Value>) -> Map<String, Value> {
    let (mut fields, mut options) = (Map::new(), Map::new());
    for (column, cell) in cells {
        let text = cell.as_str().unwrap_or_default().replace("\r\n", "\n");
        let group = match matches!(column.as_bytes(), [b'A'..=b'J']) {
            true => &mut options,
            false => &mut fields,
        };
        group.insert(column, text.into());
    }
    fields.insert("options".to_owned(), options.into());
    fields
}

/// The question of a row; without an id it is named by `number`.
pub(super) fn question(row: &Row, number: usize) -> Result<Question, DataError> {
    row.refuse_others(&["id", "question", "options", "answer"])?;
    let options = row.options("options")?;
    Ok(Question {
        id: row.optional_id("id")?.unwrap_or_else(|| number.to_string()),
        question: row.text("question")?.to_owned(),
        gold: row.get("answer").map(|_| row.letter("answer", &options)).transpose()?,
        image: None,
        options,
    })
}
