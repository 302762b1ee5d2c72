//! The plain format for the user's own questions: JSON Lines, or CSV in a file whose name ends in `.csv`.
//!
//! One question a line:
//!
//! ```json
//! {"id": "ward-7", "question": "Which vitamin is retinol?", "options": {"A": "Vitamin A", "B": "Vitamin D"}, "answer": "A"}
//! {"question": "Which of these is a bone of the leg?", "options": ["Ulna", "Tibia", "Clavicle"]}
//! ```
//!
//! The same in CSV, where a line break inside a quoted cell is part of it:
//!
//! ```csv
//! id,question,A,B,C,answer,image
//! ward-7,Which vitamin is retinol?,Vitamin A,Vitamin D,,A,
//! ,Which of these is a bone of the leg?,Ulna,Tibia,Clavicle,,
//! ```
//!
//! | field | |
//! |---|---|
//! | `question` | required |
//! | `options` | required: 2 to 10, a list, or an object whose keys are the letters from A on; in CSV the columns `A`, `B`, …, with empty cells only after the last option |
//! | `answer` | the letter of the correct option; a question without it is answered but not scored |
//! | `id` | unique in the file, a string or an integer; if missing, the record's number from 1 |
//! | `image` | a URL or a path, kept as written |
//!
//! Files are UTF-8, with or without a byte order mark, with either line ending. A missing field may also be `null`, in CSV
//! an empty cell or no column at all. An unknown field is refused, since it may be a misspelling.

use serde_json::{Map, Value};

use super::error::MEND;
use super::row::Row;
use super::source::Source;
use super::{DataError, Draft, Question};

#[cfg(test)]
mod tests;

const LETTERS: [&str; 10] = ["A", "B", "C", "D", "E", "F", "G", "H", "I", "J"];
const FIELDS: [&str; 4] = ["id", "question", "answer", "image"];

pub(super) fn read(source: &Source) -> Result<Draft, DataError> {
    let rows = source.plain_rows(&[&FIELDS[..], &LETTERS].concat(), nest)?;
    Draft::questions(source.stem(), source, rows, question)
}

/// Moves a CSV record's lettered cells into the field `options`; `\r\n` in a cell becomes `\n`.
fn nest(cells: Map<String, Value>) -> Map<String, Value> {
    let (mut fields, mut options) = (Map::new(), Map::new());
    for (column, cell) in cells {
        let text = cell.as_str().unwrap_or_default().replace("\r\n", "\n");
        let group = match LETTERS.contains(&column.as_str()) {
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
    row.refuse_others(&["id", "question", "options", "answer", "image"], MEND)?;
    let options = row.options("options")?;
    Ok(Question {
        id: row.optional_id("id")?.unwrap_or_else(|| number.to_string()),
        question: row.text("question")?.to_owned(),
        gold: row.get("answer").map(|_| row.letter("answer", &options)).transpose()?,
        image: row.optional_text("image")?.map(str::to_owned),
        options,
    })
}
