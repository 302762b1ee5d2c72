//! The page of a recipe: its tables, a figure for each, and every item of any two of its cells side by side.

mod browser;
mod figures;
mod note_figures;

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::ReportError;
use super::escape::script_json;
use super::item::spell;
use super::kit;
use super::table::Table;
use crate::analysis::conditions::in_words;
use crate::analysis::recipe::analysis::{CaseMethod, CaseRow};
use crate::analysis::recipe::results::RecipeResults;
use crate::analysis::recipe::{notes, tables};
use crate::experiment::contents::Contents;
use crate::experiment::recipe::Recipe;
use crate::experiment::recipe::cells::Cell;
use crate::experiment::recipe::file::MethodEntry;
use browser::{Browser, page_of};

const PAGE: kit::Page = kit::Page {
    template: "recipe.html",
    style: include_str!("recipe.css"),
    script: include_str!("browser.js"),
};

/// The page of a recipe from its results and the runs of its cells, in the order of the results.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
) -> Result<String, ReportError> {
    let browser = Browser::new(recipe, cells);
    let plan = cells.first().map(|(_, contents)| &contents.plan);
    let page = context! {
        name => &results.recipe,
        title => &recipe.title,
        text => &recipe.text,
        version => plan.map_or("", |plan| &plan.version),
        synthetic => results.synthetic,
        conditions => &results.conditions,
        // Cells of which too many replies could not be read.
        warnings => &results.warnings,
        seed => plan.map_or(0, |plan| plan.seed),
        runs => plan.map_or(recipe.runs, |plan| plan.runs),
        methods => recipe.method.len(),
        datasets => recipe.dataset.len(),
        // Whether there are questions to be browsed; notes stand on their cells' own pages.
        has_items => !cells.iter().any(|(cell, _)| cell.config.takes_notes()),
        // Characters after which the items' texts are cut.
        cut => browser.cut,
        sections => sections(recipe, results, cells, &browser),
        making => methods(recipe, cells),
        facts => &results.making,
        readings => &recipe.readings,
        cells => links(recipe, results, cells),
    };
    PAGE.render(context! { page, data => Value::from_safe_string(script_json(&browser)?) })
}

/// The tables, each with its figures.
fn sections(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    browser: &Browser,
) -> Vec<Value> {
    let section = |mut table: Table| {
        // The section says them under its title, where a closed table does not hide them.
        table
            .notes
            .retain(|note| !results.conditions.contains(note) && !results.warnings.contains(note));
        context! {
            name => table.name,
            ours => table.name != tables::PRINTED,
            open => !matches!(table.name, "calibration" | "cases"),
            panels => Serde(figures::panels(table.name, recipe, results)),
            cases => match table.name {
                "cases" => cases_shown(recipe, results, cells, browser),
                _ => Vec::new(),
            },
            table => table.html(),
            title => table.title,
        }
    };
    tables::all(recipe, results).into_iter().map(section).collect()
}

/// The cases of Figure 4, as the template shows them.
fn cases_shown(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    browser: &Browser,
) -> Vec<Value> {
    let shown = |case: &CaseRow| {
        let place = recipe.dataset.iter().position(|one| one.name == case.dataset);
        let question = place.and_then(|place| browser.question(place, &case.item));
        let (stem, options) = question.unwrap_or_default();
        let page = |method: &str| {
            let of = |(cell, _): &&(Cell<'_>, Contents)| {
                cell.method.name == method && cell.dataset.name == case.dataset
            };
            let found = cells.iter().find(of);
            found.map_or(String::new(), |(cell, contents)| {
                let dataset = spell(&contents.plan.dataset.name);
                format!("{}#{dataset}/{}/{}", page_of(cell), case.run, spell(&case.item))
            })
        };
        let method = |one: &CaseMethod| {
            context! {
                label => tables::method(recipe, &one.method),
                letters => tables::letters(&one.rounds),
                answer => &one.answer,
                page => page(&one.method),
            }
        };
        let dataset = tables::dataset(recipe, &case.dataset);
        context! {
            title => format!("{dataset} {}, run {}", case.item, case.run),
            stem,
            options => Serde(options),
            gold => &case.gold,
            methods => case.methods.iter().map(method).collect::<Vec<_>>(),
        }
    };
    results.cases.iter().map(shown).collect()
}

fn methods(recipe: &Recipe, cells: &[(Cell<'_>, Contents)]) -> Vec<Value> {
    let method = |method: &MethodEntry| {
        let mut of_method = cells.iter().filter(|(cell, _)| cell.method.name == method.name);
        let plan = of_method.next().map(|(_, contents)| &contents.plan);
        let settings = plan.map(|plan| &plan.settings).unwrap_or(&method.settings);
        let members = plan.iter().flat_map(|plan| &plan.panel);
        let models: Vec<String> =
            members.map(|member| format!("{}: {}", member.agent, member.backbone)).collect();
        let settings = settings.iter().map(|(key, value)| format!("{key}={}", in_words(value)));
        context! {
            label => &method.label,
            system => method.system.name(),
            settings => settings.collect::<Vec<_>>(),
            models => models.join(", "),
        }
    };
    recipe.method.iter().map(method).collect()
}

fn links(recipe: &Recipe, results: &RecipeResults, cells: &[(Cell<'_>, Contents)]) -> Vec<Value> {
    let link = |(cell, _): &(Cell<'_>, Contents)| {
        let result = tables::cell(results, &cell.method.name, &cell.dataset.name);
        let head = result.map_or("", |result| &result.head);
        let method = match result.filter(|result| result.notes.is_some()) {
            Some(result) => notes::full(recipe, result),
            None => tables::method(recipe, &cell.method.name).to_owned(),
        };
        context! {
            page => page_of(cell),
            label => format!("{method} on {}", tables::dataset(recipe, &cell.dataset.name)),
            head => head.get(..12).unwrap_or(head),
        }
    };
    cells.iter().map(link).collect()
}
