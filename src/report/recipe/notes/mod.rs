//! What a recipe on notes shows: the paper's columns, what one method gains over another, how agents got there; and its figures.

mod agents;
mod columns;
mod correction;
mod detection;
pub mod figures;
mod improvements;

use super::tables::{dataset, method};
use crate::analysis::notes::NoteFigures;
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::experiment::recipe::Recipe;
use crate::report::table::{Cell, Row, Table};

/// A cell of the recipe with its figures, and what its rows are called.
struct Entry<'a> {
    cell: &'a CellResult,
    notes: &'a NoteFigures,
    /// The dataset's label, which its rows stand under.
    dataset: &'a str,
    label: String,
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
    fn row(&self, cells: impl IntoIterator<Item = Cell>) -> Row {
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
    let tables = [
        Some(columns::table(recipe, &entries)),
        improvements::table(recipe, results),
        Some(detection::table(&entries)),
        correction::kpcs(&entries),
        agents::consensus(&entries),
        agents::confidence(&entries),
        Some(agents::stages(&entries)),
    ];
    tables.into_iter().flatten().collect()
}

/// A recipe does not know which models it runs: they stand before the method.
pub fn full(recipe: &Recipe, cell: &CellResult) -> String {
    format!(
        "{}: {}",
        cell.models.join(", "),
        method(recipe, &cell.method)
    )
}
