//! The tables of a recipe on notes: the paper's columns, what one method gains over another, then all that a run's page has of each cell.

use super::columns;
use super::improvement::{Gain, ImprovementRow};
use super::results::{CellResult, RecipeResults};
use super::tables::{cell, dataset, method, read};
use crate::analysis::health;
use crate::analysis::metrics::bootstrap::Estimate;
use crate::analysis::notes::{Measured, NoteFigures, Prices};
use crate::analysis::table::Table;
use crate::analysis::tables::notes;
use crate::experiment::recipe::{NoteColumn, Recipe};

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
        let (dataset, label) = (dataset(recipe, &cell.dataset), full(recipe, cell));
        Some(Entry { cell, notes: cell.notes.as_ref()?, dataset, label })
    }
}

/// What a cell has of a column of corrections; `None` where it was not computed, and of a cell on questions.
pub fn correction<'a>(
    recipe: &'a Recipe,
    cell: &'a CellResult,
    column: NoteColumn,
) -> Option<&'a Measured> {
    columns::correction(recipe, &Entry::of(recipe, cell)?, column)
}

/// Every table that has a row; none where the recipe is on questions.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let entries = results.cells.iter();
    let entries: Vec<Entry<'_>> = entries.filter_map(|cell| Entry::of(recipe, cell)).collect();
    if entries.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![columns::table(recipe, &entries)];
    tables.extend(improvements(recipe, results));
    let by_cell = entries.iter().map(|entry| notes::Entry {
        heading: format!("{}, {}", entry.dataset, entry.label),
        notes: entry.notes,
        health: entry.cell.parse_health,
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

fn improvements(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let full = |name: &str, dataset: &str| {
        let found = cell(results, name, dataset);
        found.map_or(name.to_owned(), |cell| full(recipe, cell))
    };
    let p = |value: f64| format!("{value:.2e}");
    let mut table = Table::of("improvements", "What guarding gains", &results.improvements)
        .grouped_by(|row| dataset(recipe, &row.dataset).to_owned())
        .text("method", |row| {
            let [own, base] = [&row.method, &row.baseline].map(|name| full(name, &row.dataset));
            format!("{own} against {base}")
        })
        .text(health::LABEL, |row| read(results, &row.method, &row.dataset))
        .text(format!("{}, of the other", health::LABEL), |row| {
            read(results, &row.baseline, &row.dataset)
        })
        .interval("difference by note", |row| &row.difference);
    let of_pairs: fn(&ImprovementRow) -> Option<&Gain> = |row| row.pairs.as_ref();
    let of_all: fn(&ImprovementRow) -> Option<&Gain> = |row| Some(&row.composites);
    for (over, gain) in [("pairs", of_pairs), ("composites", of_all)] {
        let t = move |row| gain(row)?.paired_t;
        table = table
            .under(over)
            .number("average", |row| Some(gain(row)?.average[0]))
            .number("its baseline's", |row| Some(gain(row)?.average[1]))
            .text("Δ%", |row| Some(format!("{:+.1} %", gain(row)?.delta_percent?)))
            .text("P, paired t, two-sided", |row| Some(p(t(row)?.two_sided)))
            .text("P, paired t, one-sided", |row| Some(p(t(row)?.one_sided)));
    }
    let units = results.improvements.iter().find(|row| {
        let Estimate { n_questions, n_units, .. } = row.difference;
        n_units < n_questions
    });
    let units = units.map(|row| {
        let Estimate { n_questions, n_units, .. } = row.difference;
        format!("{}: {n_questions} notes are {n_units} units; near-duplicates, which share three fifths of their words, are drawn together.", dataset(recipe, &row.dataset))
    });
    table
        .under("bootstrap over notes")
        .text("P, two-sided", |row| p(row.bootstrap.two_sided))
        .text("P, one-sided", |row| p(row.bootstrap.one_sided))
        .under("")
        .text("columns", |row| {
            row.columns.iter().map(|column| column.label()).collect::<Vec<_>>().join(", ")
        })
        .note("Averages over the columns named at the end, which are the paper's own: corrections over the pairs, and over all notes (composites). Δ% is their sum over the baseline's, less 1. One-sided P-values are against no gain or a loss. The difference by note and the bootstrap are of the composites.")
        .notes(units)
        .unless_empty()
}
