//! A table from its rows: each column stands beside what a row has in it.

use std::collections::BTreeSet;

use super::{Cell, Column, Kind, Row, Table};

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
        let of: Vec<R> = rows.into_iter().collect();
        let rows = of.iter().map(|_| Row { group: String::new(), cells: Vec::new() }).collect();
        let (columns, notes) = (Vec::new(), Vec::new());
        let table = Table { name, title: title.into(), columns, rows, notes };
        TableBuilder { of, over: String::new(), table }
    }
}

impl<R: Copy> TableBuilder<R> {
    pub fn text<C: Into<Cell>>(self, label: impl Into<String>, cell: impl Fn(R) -> C) -> Self {
        self.column(label, Kind::Text, cell)
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
        self.table.columns.push(Column { over: self.over.clone(), label: label.into(), kind });
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
