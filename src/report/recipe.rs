//! The page of a recipe: its tables, and what its cells answered to every item.

use std::path::Path;

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::ReportError;
use super::item::{Elsewhere, gold};
use super::kit;
use super::table::Table;
use crate::analysis::by_key;
use crate::analysis::conditions::in_words;
use crate::analysis::health::NOTE;
use crate::experiment::contents::Contents;
use crate::recipe::Recipe;
use crate::recipe::cells::Cell;
use crate::recipe::file::{DatasetEntry, MethodEntry};
use crate::recipe::results::RecipeResults;
use crate::recipe::{notes, tables};
use crate::record::ItemLine;

const PAGE: kit::Page =
    kit::Page { template: "recipe.html", style: include_str!("recipe.css"), script: "" };

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
    let page = context! {
        name => &results.recipe,
        title => &recipe.title,
        text => &recipe.text,
        version => plan.map_or("", |plan| &plan.version),
        synthetic => results.synthetic,
        conditions => results.conditions.iter().cloned().chain([NOTE.to_owned()]).collect::<Vec<_>>(),
        // Cells of which too many replies could not be read.
        warnings => &results.warnings,
        seed => plan.map_or(0, |plan| plan.seed),
        runs => plan.map_or(recipe.runs, |plan| plan.runs),
        methods => recipe.method.len(),
        datasets => recipe.dataset.len(),
        sections => sections(recipe, results),
        items => recipe.dataset.iter().filter_map(|one| items(recipe, results, cells, one)).collect::<Vec<_>>(),
        making => methods(recipe, cells).html(),
        readings => &recipe.readings,
        cells => cells.len(),
    };
    PAGE.render(context! { page })
}

fn sections(recipe: &Recipe, results: &RecipeResults) -> Vec<Value> {
    let section = |table: Table| {
        context! {
            name => table.name,
            ours => table.name != tables::PRINTED,
            table => table.html(),
            title => table.title,
        }
    };
    tables::all(recipe, results).into_iter().map(section).collect()
}

/// What each cell answered to each item of a dataset, run by run; `None` where no cell has run on it.
fn items(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    dataset: &DatasetEntry,
) -> Option<Value> {
    let own = || cells.iter().filter(|(cell, _)| cell.dataset.name == dataset.name);
    let (_, first) = own().next()?;
    let outcomes = own().map(|(_, contents)| contents.outcomes().into_values());
    let found: Vec<_> = outcomes.map(|all| by_key(all, ItemLine::item)).collect();
    let row = |id: &String| {
        let lines = found.iter().map(|cell| cell.get(id.as_str()).map_or(&[][..], Vec::as_slice));
        context! {
            id,
            gold => lines.clone().flatten().next().map_or("–".to_owned(), |line| gold(line)),
            answers => Serde(lines.map(|of_cell| {
                of_cell.iter().map(|line| Elsewhere::of(line)).collect::<Vec<_>>()
            }).collect::<Vec<_>>()),
        }
    };
    let cell = |(cell, _): &(Cell<'_>, Contents)| {
        context! { page => page_of(cell), label => label(recipe, results, cell) }
    };
    Some(context! {
        label => &dataset.label,
        cells => own().map(cell).collect::<Vec<_>>(),
        rows => first.plan.dataset.items.iter().map(row).collect::<Vec<_>>(),
    })
}

/// What each method was run as.
fn methods(recipe: &Recipe, cells: &[(Cell<'_>, Contents)]) -> Table {
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

/// Where a cell's own page lies, from the recipe's folder.
fn page_of(cell: &Cell<'_>) -> String {
    format!("{}/report.html", cell.directory(Path::new("")).display())
}
