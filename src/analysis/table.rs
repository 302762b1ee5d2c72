//! What a table says, and how it is written as Markdown, CSV and JSON. Markdown rounds; CSV and JSON keep every digit. HTML is the report's.

mod cell;
#[cfg(test)]
pub(crate) mod tests;

pub use cell::{Cell, Column, Kind};

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::health::ParseHealth;
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

/// What a row is of, and what it is called.
pub struct Labelled<'a, T> {
    /// The heading that it stands under; may be empty.
    pub group: String,
    pub label: String,
    pub of: &'a T,
    /// How the replies behind it were read.
    pub health: Option<ParseHealth>,
}

impl Table {
    fn has_groups(&self) -> bool {
        self.rows.iter().any(|row| !row.group.is_empty())
    }

    /// The rows, each with its heading where that is another than the row's before.
    pub fn with_headings(&self) -> impl Iterator<Item = (Option<&str>, &Row)> {
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
        for (group, row) in self.with_headings() {
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

    /// A line of headings, then a line a row; a figure a field.
    ///
    /// # Errors
    /// A row without as many cells as there are columns.
    pub fn csv(&self) -> std::io::Result<String> {
        let group = |group: &str| self.has_groups().then(|| group.to_owned());
        let headings = self.columns.iter().flat_map(Column::headings);
        let mut writer = csv::Writer::from_writer(Vec::new());
        writer.write_record(group("group").into_iter().chain(headings))?;
        for row in &self.rows {
            let cells = self.columns.iter().zip(&row.cells);
            let fields = cells.flat_map(|(column, cell)| cell.fields(column));
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

/// A table that columns are added to, one after another. `R` is what its rows are made of.
pub struct TableBuilder<R> {
    of: Vec<R>,
    /// The heading that the next columns share.
    over: String,
    table: Table,
}

impl Table {
    /// A row for each of `rows`, without columns yet.
    pub fn of<R: Copy>(
        name: &'static str,
        title: impl Into<String>,
        rows: impl IntoIterator<Item = R>,
    ) -> TableBuilder<R> {
        Table::grouped(name, title, rows.into_iter().map(|row| (String::new(), row)))
    }

    /// The same, each row under the heading that stands before it.
    pub fn grouped<R: Copy>(
        name: &'static str,
        title: impl Into<String>,
        rows: impl IntoIterator<Item = (String, R)>,
    ) -> TableBuilder<R> {
        let row = |(group, of)| (Row { group, cells: Vec::new() }, of);
        let (rows, of) = rows.into_iter().map(row).unzip();
        let (columns, notes) = (Vec::new(), Vec::new());
        let table = Table { name, title: title.into(), columns, rows, notes };
        TableBuilder { of, over: String::new(), table }
    }
}

impl<R: Copy> TableBuilder<R> {
    pub fn text<C: Into<Cell>>(self, label: impl Into<String>, cell: impl Fn(R) -> C) -> Self {
        self.column(label, Kind::Text, cell)
    }

    /// Texts of several figures ([`Cell::Figures`]), which CSV has as fields of these names.
    pub fn figures<C: Into<Cell>>(
        self,
        label: impl Into<String>,
        names: impl IntoIterator<Item = impl Into<String>>,
        cell: impl Fn(R) -> C,
    ) -> Self {
        let mut builder = self.text(label, cell);
        if let Some(column) = builder.table.columns.last_mut() {
            column.figures = names.into_iter().map(Into::into).collect();
        }
        builder
    }

    pub fn number<C: Into<Cell>>(self, label: impl Into<String>, cell: impl Fn(R) -> C) -> Self {
        self.column(label, Kind::Number, cell)
    }

    pub fn spread<C: Into<Cell>>(self, label: impl Into<String>, cell: impl Fn(R) -> C) -> Self {
        self.column(label, Kind::Spread, cell)
    }

    pub fn interval<C: Into<Cell>>(self, label: impl Into<String>, cell: impl Fn(R) -> C) -> Self {
        self.column(label, Kind::Interval, cell)
    }

    fn column<C: Into<Cell>>(
        mut self,
        label: impl Into<String>,
        kind: Kind,
        cell: impl Fn(R) -> C,
    ) -> Self {
        let (over, label, figures) = (self.over.clone(), label.into(), Vec::new());
        self.table.columns.push(Column { over, label, kind, figures });
        for (row, of) in self.table.rows.iter_mut().zip(&self.of) {
            row.cells.push(cell(*of).into());
        }
        self
    }

    /// The columns from here on share this heading; an empty one is none.
    pub fn under(mut self, over: impl Into<String>) -> Self {
        self.over = over.into();
        self
    }

    /// The heading that each row stands under.
    pub fn grouped_by(mut self, group: impl Fn(R) -> String) -> Self {
        for (row, of) in self.table.rows.iter_mut().zip(&self.of) {
            row.group = group(*of);
        }
        self
    }

    /// A sentence under the table.
    pub fn note(mut self, note: impl Into<String>) -> Self {
        self.table.notes.push(note.into());
        self
    }

    pub fn notes(mut self, notes: impl IntoIterator<Item = String>) -> Self {
        self.table.notes.extend(notes);
        self
    }

    /// With a sentence for each number of items that were drawn as fewer units.
    pub fn build(mut self) -> Table {
        let cells = self.table.rows.iter().flat_map(|row| &row.cells);
        let said: BTreeSet<String> =
            cells.filter_map(|cell| cell.estimate()?.drawn_together()).collect();
        self.table.notes.extend(said);
        self.table
    }

    /// `None` without rows.
    pub fn unless_empty(self) -> Option<Table> {
        (!self.of.is_empty()).then(|| self.build())
    }
}
