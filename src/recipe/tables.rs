//! The tables of a recipe: its cells beside the paper's figures, what the analyses found, and cost.

use super::Recipe;
use super::file::MethodEntry;
use super::paper::PrintedTable;
use super::results::{CellResult, RecipeResults};
use super::{analysis, notes, paired};
use crate::analysis::health::{self, SYNTHETIC};
use crate::analysis::metrics::cost::{self, Cost};
use crate::analysis::metrics::over_runs::Spread;
use crate::analysis::table::{Cell, Labelled, Table};

/// Every table that has a row.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let of_notes = notes::all(recipe, results);
    let mut tables = if of_notes.is_empty() { vec![accuracy(recipe, results)] } else { of_notes };
    let costs = costs(recipe, results);
    let found = [
        analysis::net_gain_table(recipe, results),
        paired::table(recipe, results),
        analysis::collapse_table(recipe, results),
        analysis::case_table(recipe, results),
        health::table(&costs),
        (!costs.is_empty()).then(|| cost::table(&costs)),
    ];
    tables.extend(found.into_iter().flatten());
    for printed in &recipe.printed {
        let beside = tables.iter().position(|table| table.name == printed.beside);
        let place = beside.map_or(tables.len(), |place| {
            let of_it = tables[place + 1..].iter().take_while(|table| table.name == PRINTED);
            place + 1 + of_it.count()
        });
        tables.insert(place, as_printed(printed));
    }
    tables
}

/// The first of them, as it ends a run: with what of the remarks nobody may miss. Which cells they are of is on the page.
pub fn main(recipe: &Recipe, results: &RecipeResults) -> Table {
    let mut table = all(recipe, results).swap_remove(0);
    table.notes.extend(results.synthetic.then(|| SYNTHETIC.to_owned()));
    let warnings = results.warnings.iter().filter_map(|warning| warning.lines().next());
    table.notes.extend(warnings.map(str::to_owned));
    table
}

/// What holds of all our figures, and stands once beside the tables: warnings, and how the runs were made.
pub fn remarks(results: &RecipeResults) -> Vec<String> {
    let noise = results.synthetic.then(|| SYNTHETIC.to_owned());
    let said = results.warnings.iter().chain(&results.conditions).cloned();
    noise.into_iter().chain(said).collect()
}

/// The name of tables that the paper prints.
pub const PRINTED: &str = "printed";

fn as_printed(printed: &PrintedTable) -> Table {
    let mut table = Table::of(PRINTED, &printed.title, &printed.rows);
    for (place, column) in printed.columns.iter().enumerate() {
        table = table.text(column, |row| row.get(place));
    }
    table.notes(printed.notes.iter().cloned()).build()
}

/// The label of a method; its name where the recipe does not have it.
pub fn method<'a>(recipe: &'a Recipe, name: &'a str) -> &'a str {
    let entry = recipe.method.iter().find(|method| method.name == name);
    entry.map_or(name, |method| &method.label)
}

/// The label of a dataset; its name where the recipe does not have it.
pub fn dataset<'a>(recipe: &'a Recipe, name: &'a str) -> &'a str {
    let entry = recipe.dataset.iter().find(|dataset| dataset.name == name);
    entry.map_or(name, |dataset| &dataset.label)
}

/// The cell of a method on a dataset, both by name.
pub fn cell<'a>(results: &'a RecipeResults, method: &str, dataset: &str) -> Option<&'a CellResult> {
    let mut cells = results.cells.iter();
    cells.find(|cell| cell.method == method && cell.dataset == dataset)
}

fn accuracy(recipe: &Recipe, results: &RecipeResults) -> Table {
    let failures = results.cells.iter().filter(|cell| cell.n_errors > 0).map(|found| {
        let (method, dataset) = (method(recipe, &found.method), dataset(recipe, &found.dataset));
        format!("{method} on {dataset}: {} failed, and count as wrong.", found.n_errors)
    });
    let mut table = Table::of("accuracy", "Accuracy", &recipe.method)
        .grouped_by(|method| method.group.clone())
        .text("method", |method| &method.label);
    for dataset in &recipe.dataset {
        let found = |method: &MethodEntry| cell(results, &method.name, &dataset.name);
        table = table.under(&dataset.label).spread("ours", |method| {
            let ours = found(method)?;
            let shown = |spread| Cell::Spread(spread, is_best(ours, results));
            Some(ours.spread().map_or("no gold".into(), shown))
        });
        if recipe.method.iter().any(|one| one.paper.contains_key(&dataset.name)) {
            table = table
                .spread("paper", |method| {
                    let [mean, std] = found(method)?.paper?;
                    Some(Spread { mean, std: Some(std), n: None })
                })
                .interval("ours − paper", |method| {
                    let found = found(method)?;
                    let ([paper, _], ours) = (found.paper?, found.interval?);
                    Some(Cell::Estimate(ours.less(paper)))
                });
        }
        table = table.replies(|method| found(method)?.parse_health);
    }
    let has_paper = recipe.method.iter().any(|one| !one.paper.is_empty());
    let of_paper = "The difference has the interval of ours over the questions, 95 % by bootstrap of questions; the paper's own spread is not in it.";
    table
        .note("Mean ± sample standard deviation over the runs; best of a column in bold.")
        .notes(has_paper.then(|| of_paper.to_owned()))
        .notes(failures)
        .build()
}

/// Whether no method does better on the dataset, once all have run; methods that tie for best all do.
fn is_best(cell: &CellResult, results: &RecipeResults) -> bool {
    let others = || results.cells.iter().filter(|other| other.dataset == cell.dataset);
    let is_whole = results.missing.is_empty();
    is_whole
        && cell.mean.is_some()
        && others().count() > 1
        && others().all(|other| other.mean <= cell.mean)
}

/// What cells cost, under the dataset's label with the method's.
fn costs<'a>(recipe: &Recipe, results: &'a RecipeResults) -> Vec<Labelled<'a, Cost>> {
    let labelled = |cell: &'a CellResult| {
        let (group, label) = (dataset(recipe, &cell.dataset), method(recipe, &cell.method));
        let (group, label) = (group.to_owned(), label.to_owned());
        Some(Labelled { group, label, of: cell.cost.as_ref()?, health: cell.parse_health })
    };
    results.cells.iter().filter_map(labelled).collect()
}

#[cfg(test)]
mod tests;
