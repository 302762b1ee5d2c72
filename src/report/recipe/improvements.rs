//! What one method gains over another.

use super::notes::full;
use crate::analysis::recipe::improvement::ImprovementRow;
use crate::analysis::recipe::results::RecipeResults;
use crate::experiment::recipe::Recipe;
use crate::report::recipe::tables::{cell, dataset};
use crate::report::table::{Cell, Column, Kind, Row, Table};

pub fn table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let full = |name: &str, dataset: &str| {
        let found = cell(results, name, dataset);
        found.map_or(name.to_owned(), |cell| full(recipe, cell))
    };
    let row = |row: &ImprovementRow| Row {
        group: dataset(recipe, &row.dataset).to_owned(),
        cells: vec![
            Cell::text(format!(
                "{} against {}",
                full(&row.method, &row.dataset),
                full(&row.baseline, &row.dataset)
            )),
            Cell::share(Some(row.average[0])),
            Cell::share(Some(row.average[1])),
            row.delta_percent.map_or(Cell::Nothing, |delta| Cell::text(format!("{delta:+.1} %"))),
            Cell::estimate(&row.difference),
            row.paired_t.map_or(Cell::Nothing, |test| Cell::text(format!("{:.2e}", test.p_value))),
            Cell::text(format!("{:.2e}", row.bootstrap_p)),
            Cell::text(
                row.columns.iter().map(|column| column.label()).collect::<Vec<_>>().join(", "),
            ),
        ],
    };
    Table {
        name: "improvements",
        title: "What guarding gains".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("average", Kind::Number),
            Column::new("its baseline's", Kind::Number),
            Column::new("Δ%", Kind::Text),
            Column::new("difference by note", Kind::Interval),
            Column::under("P-value", "paired t over columns", Kind::Text),
            Column::under("P-value", "bootstrap over notes", Kind::Text),
            Column::new("columns", Kind::Text),
        ],
        rows: results.improvements.iter().map(row).collect(),
        notes: vec![
            "Averages over the columns named at the end, corrections over all notes. Δ% is their sum over the baseline's, less 1. Both P-values are two-sided.".to_owned(),
        ],
    }
    .unless_empty()
}
