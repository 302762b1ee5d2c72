//! The tables of a recipe on notes: the paper's columns, what one method gains over another, then all that a run's page has of each cell.

use std::collections::BTreeMap;
use std::path::Path;

use super::Recipe;
use super::improvement;
use super::paper::COLUMNS;
use super::results::{CellResult, RecipeResults};
use super::tables::{dataset, method};
use crate::analysis::metrics::kpcs::ALPHA;
use crate::analysis::notes::{self, KeywordFile, Measure, Measured};
use crate::analysis::table::{Cell, Labelled, Table};
use crate::data::Format;

/// Every table that has a row; none where the recipe is on questions.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let cells: Vec<&CellResult> =
        results.cells.iter().filter(|cell| cell.notes.is_some()).collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![columns(recipe, &cells)];
    tables.extend(improvement::table(recipe, results));
    let figures = cells.iter().filter_map(|cell| {
        let (label, dataset) = (full(recipe, cell), dataset(recipe, &cell.dataset));
        let group = format!("{dataset}, {label}");
        Some(Labelled { group, label, of: cell.notes.as_ref()?, health: cell.parse_health })
    });
    for mut table in notes::tables(&figures.collect::<Vec<_>>()) {
        // A recipe's cost is another table.
        if table.name == "cost" {
            table.name = "stages";
        }
        if table.name == "correction" {
            let keywords = results.keywords.iter().map(|KeywordFile { path, sha256, notes }| {
                let name = Path::new(path).file_name().unwrap_or_default().to_string_lossy();
                let sum = sha256.get(..12).unwrap_or(sha256);
                format!("Keywords: {name}, of {notes} notes, sha256 {sum}….")
            });
            table.notes.extend(keywords);
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

/// A cell of ours, or what the paper has for a dataset.
struct Row<'a> {
    dataset: &'a str,
    method: String,
    ours: Option<&'a CellResult>,
    papers: Option<&'a BTreeMap<Measure, f64>>,
}

/// What a cell has of a column of corrections; ROUGE-1 is the one that the paper has for the dataset. `None` where it was not computed,
/// and of a cell on questions.
fn correction<'a>(recipe: &Recipe, cell: &'a CellResult, column: Measure) -> Option<&'a Measured> {
    let correction = cell.notes.as_ref()?.correction.as_ref()?;
    let mut datasets = recipe.dataset.iter();
    let is_medec = datasets.any(|one| one.name == cell.dataset && one.format == Format::Medec);
    match column.as_published(is_medec) {
        Measure::Kpcs => {
            let of_alpha = correction.kpcs.iter().find(|one| one.alpha == ALPHA);
            of_alpha.map(|one| &one.eq9)
        }
        measure => correction.measure(measure),
    }
}

/// A share of all notes, or the mean of a measure over the pairs.
fn first(recipe: &Recipe, row: &Row<'_>, column: Measure) -> Cell {
    let Some(cell) = row.ours else {
        return row.papers.and_then(|figures| figures.get(&column).copied()).into();
    };
    let notes = cell.notes.as_ref();
    let found = match column {
        Measure::Detection => notes.and_then(|one| Some(&one.detection.as_ref()?.accuracy)),
        Measure::Localisation => notes.and_then(|one| Some(&one.localisation.as_ref()?.accuracy)),
        _ => correction(recipe, cell, column).and_then(|one| one.subset.as_ref()),
    };
    found.into()
}

fn columns(recipe: &Recipe, cells: &[&CellResult]) -> Table {
    let mut rows = Vec::new();
    for one in &recipe.dataset {
        let own = cells.iter().filter(|cell| cell.dataset == one.name);
        rows.extend(own.map(|cell| {
            let method = full(recipe, cell);
            Row { dataset: &one.label, method, ours: Some(cell), papers: None }
        }));
        rows.extend(recipe.published.iter().filter_map(|published| {
            let papers = Some(published.figures.get(&one.name)?);
            let method = format!("paper: {}", published.label);
            Some(Row { dataset: &one.label, method, ours: None, papers })
        }));
    }
    let mut table = Table::of("notes", "Detection, localisation, correction", &rows)
        .grouped_by(|row| row.dataset.to_owned())
        .text("method", |row| &row.method)
        .replies(|row| row.ours?.parse_health);
    for column in COLUMNS {
        let label = column.label();
        table = match column {
            Measure::Detection | Measure::Localisation => {
                table.under("").spread(label, |row| first(recipe, row, column))
            }
            _ => table
                .under(label)
                .spread("pairs", |row| first(recipe, row, column))
                .spread("all notes", |row| Some(&correction(recipe, row.ours?, column)?.composite)),
        };
    }
    let failed = cells.iter().filter(|cell| cell.n_errors > 0).map(|cell| {
        let (label, dataset) = (full(recipe, cell), dataset(recipe, &cell.dataset));
        format!("{label} on {dataset}: {} failed, and count as wrong.", cell.n_errors)
    });
    table
        .note("Pairs: the mean over notes that both the gold and the system correct. All notes: 1 where neither corrects, 0 where only one does. MedGuards' paper says that it uses the latter; its figures look like the former, and are listed there. ROUGE-1 is F1, as its published code has it; its A.1 says recall. BERTScore takes that code's models: deberta-xlarge-mnli, in English rescaled and in Arabic not, and bert-base-chinese. KPCS is 0 where no keyword is found. Their other readings stand in the table of corrections.")
        .notes(failed)
        .build()
}
