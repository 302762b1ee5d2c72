//! The tables of a recipe on notes: the paper's columns, what one method gains over another, then all that a run's page has of each cell.

use super::tables::{dataset, method};
use super::{columns, improvements};
use crate::analysis::notes::{NoteFigures, Prices};
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::experiment::recipe::Recipe;
use crate::report::table::{Cell, Row, Table};
use crate::report::tables::notes;

/// A cell of the recipe with its figures, and what its rows are called.
pub struct Entry<'a> {
    pub cell: &'a CellResult,
    pub notes: &'a NoteFigures,
    /// The dataset's label, which its rows stand under.
    pub dataset: &'a str,
    pub label: String,
}

impl<'a> Entry<'a> {
    /// `None` of a cell on questions.
    fn of(recipe: &'a Recipe, cell: &'a CellResult) -> Option<Entry<'a>> {
        Some(Entry {
            cell,
            notes: cell.notes.as_ref()?,
            dataset: dataset(recipe, &cell.dataset),
            label: full(recipe, cell),
        })
    }

    /// Its label, then these.
    pub fn row(&self, cells: impl IntoIterator<Item = Cell>) -> Row {
        Row {
            group: self.dataset.to_owned(),
            cells: [Cell::text(&self.label)].into_iter().chain(cells).collect(),
        }
    }
}

/// Every table that has a row; none where the recipe is on questions.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let entries = results.cells.iter();
    let entries: Vec<Entry<'_>> = entries.filter_map(|cell| Entry::of(recipe, cell)).collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![columns::table(recipe, &entries)];
    tables.extend(improvements::table(recipe, results));
    let by_cell = entries.iter().map(|entry| notes::Entry {
        heading: format!("{}, {}", entry.dataset, entry.label),
        notes: entry.notes,
    });
    let by_cell: Vec<notes::Entry<'_>> = by_cell.collect();
    for mut table in notes::all(&by_cell, &Prices::default()) {
        // A recipe's cost is another table.
        if table.name == "cost" {
            table.name = "stages";
        }
        tables.push(table);
    }
    tables
}

/// A recipe does not know which models it runs: they stand before the method.
pub fn full(recipe: &Recipe, cell: &CellResult) -> String {
    let models = cell.models.join(", ");
    format!("{models}: {}", method(recipe, &cell.method))
}
