//! The page of a recipe: its tables, and what its cells answered to every item.

use std::path::Path;

use itertools::Itertools;
use minijinja::context;
use minijinja::value::Value;

use super::ReportError;
use super::beside::{self, Column, difference};
use super::table::Table;
use crate::analysis::conditions::in_words;
use crate::experiment::contents::Contents;
use crate::recipe::Recipe;
use crate::recipe::cells::Cell;
use crate::recipe::file::{DatasetEntry, MethodEntry};
use crate::recipe::paired::{Against, PairedRow};
use crate::recipe::results::RecipeResults;
use crate::recipe::{notes, tables};
use crate::record::count;

/// The page of a recipe from its results and the runs of its cells, in the order of the results.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
) -> Result<String, ReportError> {
    let plan = cells.first().map(|(_, contents)| &contents.plan);
    let runs = count(plan.map_or(recipe.runs, |plan| plan.runs), "run");
    let seed = plan.map_or(0, |plan| plan.seed);
    let method = format!(
        "Each method answered the same items of each dataset, in {runs} with random draws of its own. A call's seed derives from the run's random seed {seed} and the call's dataset, run, item, agent, round, purpose and sample; equal requests of two cells are one call."
    );
    let methods = count(recipe.method.len(), "method");
    let page = context! {
        kicker => format!("wardround recipe {}", results.recipe),
        title => &recipe.title,
        text => &recipe.text,
        about => format!("{methods} on {}, {runs} each.", count(recipe.dataset.len(), "dataset")),
        version => plan.map_or("", |plan| &plan.version),
        synthetic => results.synthetic,
        verdict => verdict(recipe, results),
        warnings => &results.warnings,
        items => recipe.dataset.iter().filter_map(|one| items(recipe, results, cells, one)).collect_vec(),
        links => "Each answer leads to its case on the page of its cell, in cells/ beside this file.",
        method => [method].into_iter().chain(results.conditions.iter().cloned()).collect_vec(),
        making => Value::from_safe_string(methods_table(recipe, cells).html()),
        readings => &recipe.readings,
    };
    beside::render(&tables::all(recipe, results), page)
}

/// MED-MAD against the baseline that the paper names, or what else the recipe sets each method against.
fn verdict(recipe: &Recipe, results: &RecipeResults) -> Vec<String> {
    let against = |why: Against| results.paired.iter().filter(move |row| row.comparison == why);
    let told = |row: &PairedRow| {
        let [method, baseline] =
            [&row.method, &row.baseline].map(|name| tables::method(recipe, name));
        let told = difference(method, baseline, &row.difference);
        format!("{}: {told}", tables::dataset(recipe, &row.dataset))
    };
    let named = against(Against::Named).map(told).collect_vec();
    if named.is_empty() { against(Against::First).map(told).collect() } else { named }
}

/// What each cell answered to each item of a dataset, run by run; `None` where no cell has run on it.
fn items(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    dataset: &DatasetEntry,
) -> Option<Value> {
    let own = cells.iter().filter(|(cell, _)| cell.dataset.name == dataset.name);
    let columns = own.map(|(cell, contents)| Column {
        // Seen from the recipe's folder.
        page: format!("{}/report.html", cell.directory(Path::new("")).display()),
        label: label(recipe, results, cell),
        contents,
    });
    let columns = columns.collect_vec();
    let ids = &columns.first()?.contents.plan.dataset.items;
    Some(beside::items(&dataset.label, ids, &columns))
}

/// What each method was run as.
fn methods_table(recipe: &Recipe, cells: &[(Cell<'_>, Contents)]) -> Table {
    let plan = |method: &MethodEntry| {
        let mut of_method = cells.iter().filter(|(cell, _)| cell.method.name == method.name);
        of_method.next().map(|(_, contents)| &contents.plan)
    };
    let settings = |method: &MethodEntry| {
        let settings = plan(method).map(|plan| &plan.settings).unwrap_or(&method.settings);
        let settings = settings.iter().map(|(key, value)| format!("{key}={}", in_words(value)));
        settings.collect::<Vec<_>>().join(", ")
    };
    let models = |method: &MethodEntry| {
        let members = plan(method).into_iter().flat_map(|plan| &plan.panel);
        let models = members.map(|member| format!("{}: {}", member.agent, member.backbone));
        models.collect::<Vec<_>>().join(", ")
    };
    Table::of("methods", "Methods", &recipe.method)
        .text("method", |method| &method.label)
        .text("system", |method| method.system.name())
        .text("settings", settings)
        .text("models, in the order of the roles", models)
        .build()
}

/// What a cell is called beside others on its dataset.
fn label(recipe: &Recipe, results: &RecipeResults, cell: &Cell<'_>) -> String {
    let result = tables::cell(results, &cell.method.name, &cell.dataset.name);
    let of_notes = result.filter(|result| result.notes.is_some());
    of_notes.map_or(cell.method.label.clone(), |result| notes::full(recipe, result))
}
