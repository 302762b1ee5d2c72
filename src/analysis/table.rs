//! What a table says, and how it is written as Markdown, CSV and JSON. Markdown rounds; CSV and JSON keep every digit. HTML is the report's.

mod builder;
mod cell;
#[cfg(test)]
pub(crate) mod tests;

pub use builder::TableBuilder;
pub use cell::{Cell, Column, Kind};

use serde_json::{Map, Value, json};

use crate::text::spreadsheet::cell;

#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// What `--table` calls it.
    pub name: &'static str,
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Sentences that stand under it.
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The heading that it stands under; may be empty.
    pub group: String,
    /// One for each column.
    pub cells: Vec<Cell>,
}

impl Table {
    fn has_groups(&self) -> bool {
        self.rows.iter().any(|row| !row.group.is_empty())
    }

    /// The rows, each with its heading where that is another than the row's before.
    pub fn grouped(&self) -> impl Iterator<Item = (Option<&str>, &Row)> {
        let before = [""].into_iter();
        let before = before.chain(self.rows.iter().map(|row| row.group.as_str()));
        let rows = self.rows.iter().zip(before);
        rows.map(|(row, before)| {
            let group = Some(row.group.as_str());
            (group.filter(|group| *group != before), row)
        })
    }

    pub fn markdown(&self) -> String {
        let plain = |text: &str| text.replace('|', "\\|").replace('\n', " ");
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = format!("**{}**\n\n", self.title);
        text += &line(self.columns.iter().map(|c| plain(&c.heading())).collect());
        let rule = self.columns.iter().map(|column| match column.kind {
            Kind::Text => "---".to_owned(),
            _ => "---:".to_owned(),
        });
        text += &line(rule.collect());
        for (group, row) in self.grouped() {
            if let Some(group) = group {
                let mut cells = vec![String::new(); self.columns.len()];
                cells[0] = format!("*{}*", plain(group));
                text += &line(cells);
            }
            let cells = row.cells.iter().map(|cell| match cell.is_best() {
                true => format!("**{}**", cell.shown()),
                false => plain(&cell.shown()),
            });
            text += &line(cells.collect());
        }
        for note in &self.notes {
            text += &format!("\n{note}\n");
        }
        text
    }

    /// A line of headings, then a line a row.
    ///
    /// # Errors
    /// A row without as many cells as there are columns.
    pub fn csv(&self) -> std::io::Result<String> {
        let group = |group: &str| self.has_groups().then(|| group.to_owned());
        let headings = self.columns.iter().flat_map(Column::headings);
        let mut writer = csv::Writer::from_writer(Vec::new());
        let headings = group("group").into_iter().chain(headings);
        writer.write_record(headings.map(|it| cell(&it).into_owned()))?;
        for row in &self.rows {
            let cells = self.columns.iter().zip(&row.cells);
            let fields = cells.flat_map(|(column, cell)| cell.fields(column.kind));
            let fields = group(&row.group).into_iter().chain(fields);
            writer.write_record(fields.map(|it| cell(&it).into_owned()))?;
        }
        let bytes = writer.into_inner().map_err(csv::IntoInnerError::into_error)?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    pub fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let mut object = Map::new();
            if self.has_groups() {
                object.insert("group".to_owned(), json!(row.group));
            }
            for (column, cell) in self.columns.iter().zip(&row.cells) {
                object.insert(column.heading(), cell.json());
            }
            Value::Object(object)
        });
        json!({
            "name": self.name,
            "title": self.title,
            "rows": rows.collect::<Vec<_>>(),
            "notes": self.notes,
        })
    }
}
