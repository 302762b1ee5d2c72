//! The tables of a recipe on notes: the paper's columns, what one method gains over another, then all that a run's page has of each cell.

use std::borrow::Cow;
use std::path::Path;

use super::results::{CellResult, RecipeResults};
use super::tables::{dataset, method};
use super::{columns, gains};
use crate::analysis::notes::{KeywordFile, NoteFigures};
use crate::analysis::table::Table;
use crate::analysis::tables::notes;
use crate::experiment::recipe::Recipe;

/// A cell of the recipe with its figures, and what its rows are called.
pub struct Entry<'a> {
    pub cell: &'a CellResult,
    pub notes: &'a NoteFigures,
    /// The dataset's label, which its rows stand under.
    pub dataset: &'a str,
    pub label: String,
}

/// Every table that has a row; none where the recipe is on questions.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let entry = |cell| {
        let CellResult { dataset: name, notes, .. }: &CellResult = cell;
        let (dataset, label) = (dataset(recipe, name), full(recipe, cell));
        Some(Entry { cell, notes: notes.as_ref()?, dataset, label })
    };
    let entries: Vec<Entry<'_>> = results.cells.iter().filter_map(entry).collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![columns::table(recipe, &entries)];
    tables.extend(gains::table(recipe, results));
    let by_cell = entries.iter().map(|entry| notes::Entry {
        heading: format!("{}, {}", entry.dataset, entry.label),
        notes: entry.notes,
        health: entry.cell.parse_health,
    });
    let by_cell: Vec<notes::Entry<'_>> = by_cell.collect();
    for mut table in notes::all(&by_cell) {
        // A recipe's cost is another table.
        if table.name == "cost" {
            table.name = "stages";
        }
        if table.name == "correction" {
            let keywords = results.keywords.iter().map(|KeywordFile { path, sha256, notes }| {
                format!("Keywords: {}, of {notes} notes, {}.", name(path), sum(sha256))
            });
            table.notes.extend(keywords);
        }
        tables.push(table);
    }
    tables
}

/// A file's name without its folders.
fn name(path: &str) -> Cow<'_, str> {
    Path::new(path).file_name().unwrap_or_default().to_string_lossy()
}

/// The beginning of a checksum.
fn sum(sha256: &str) -> String {
    format!("sha256 {}…", sha256.get(..12).unwrap_or(sha256))
}

/// A recipe does not know which models it runs: they stand before the method.
pub fn full(recipe: &Recipe, cell: &CellResult) -> String {
    let models = cell.models.join(", ");
    format!("{models}: {}", method(recipe, &cell.method))
}
