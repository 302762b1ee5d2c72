//! The page of a recipe: its tables, a figure for each, and every item of any two of its cells side by side.

mod browser;
mod figures;
mod note_figures;

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::ReportError;
use super::figure::Panel;
use super::item::spell;
use super::kit;
use super::table::Table;
use crate::analysis::recipe::analysis::CaseRow;
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

#[derive(Serialize)]
struct Page<'a> {
    name: &'a str,
    title: &'a str,
    text: &'a str,
    version: &'a str,
    synthetic: bool,
    conditions: &'a [String],
    /// Cells of which too many replies could not be read.
    warnings: &'a [String],
    seed: u64,
    runs: u32,
    methods: usize,
    datasets: usize,
    /// Whether there are questions to be browsed; notes stand on their cells' own pages.
    has_items: bool,
    /// Characters after which the items' texts are cut.
    cut: usize,
    sections: Vec<Section<'a>>,
    making: Vec<Method<'a>>,
    facts: &'a [String],
    readings: &'a [String],
    cells: Vec<Link>,
}

/// A table with its figures.
#[derive(Serialize)]
struct Section<'a> {
    name: &'static str,
    title: String,
    panels: Vec<Panel>,
    cases: Vec<Told<'a>>,
    /// HTML.
    table: String,
    open: bool,
}

/// A case of Figure 4.
#[derive(Serialize)]
struct Told<'a> {
    title: String,
    stem: String,
    options: Vec<(String, String)>,
    gold: &'a str,
    methods: Vec<ToldMethod<'a>>,
}

#[derive(Serialize)]
struct ToldMethod<'a> {
    label: &'a str,
    letters: String,
    answer: &'a str,
    page: String,
}

#[derive(Serialize)]
struct Method<'a> {
    label: &'a str,
    system: &'a str,
    settings: Vec<String>,
    models: String,
}

#[derive(Serialize)]
struct Link {
    page: String,
    label: String,
    head: String,
}

/// The page of a recipe from its results and the runs of its cells, in the order of the results.
///
/// # Errors
/// A template that does not hold.
pub fn render(
    recipe: &Recipe,
    results: &RecipeResults,
    cells: &[(Cell<'_>, Contents)],
) -> Result<String, ReportError> {
    let browser = Browser::new(recipe, cells);
    let plan = cells.first().map(|(_, contents)| &contents.plan);
    let page = Page {
        name: &results.recipe,
        title: &recipe.title,
        text: &recipe.text,
        version: plan.map_or("", |plan| &plan.version),
        synthetic: results.synthetic,
        conditions: &results.conditions,
        warnings: &results.warnings,
        seed: plan.map_or(0, |plan| plan.seed),
        runs: plan.map_or(recipe.runs, |plan| plan.runs),
        methods: recipe.method.len(),
        datasets: recipe.dataset.len(),
        has_items: !cells.iter().any(|(cell, _)| cell.protocol.takes_notes()),
        cut: browser.cut,
        sections: sections(recipe, results, cells, &browser),
        making: methods(recipe, cells),
        facts: &results.making,
        readings: &recipe.readings,
        cells: links(recipe, results, cells),
    };
    PAGE.render(context! {
        page => Value::from(Serde(&page)),
        data => Value::from_safe_string(browser.json()?),
    })
}

fn sections<'a>(
    recipe: &'a Recipe,
    results: &'a RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    browser: &Browser,
) -> Vec<Section<'a>> {
    let section = |mut table: Table| {
        // The section says them under its title, where a closed table does not hide them.
        table
            .notes
            .retain(|note| !results.conditions.contains(note) && !results.warnings.contains(note));
        Section {
            name: table.name,
            open: !matches!(table.name, "calibration" | "cases"),
            panels: figures::panels(table.name, recipe, results),
            cases: match table.name {
                "cases" => told(recipe, results, cells, browser),
                _ => Vec::new(),
            },
            table: table.html(),
            title: table.title,
        }
    };
    tables::all(recipe, results).into_iter().map(section).collect()
}

fn told<'a>(
    recipe: &'a Recipe,
    results: &'a RecipeResults,
    cells: &[(Cell<'_>, Contents)],
    browser: &Browser,
) -> Vec<Told<'a>> {
    let told = |case: &'a CaseRow| {
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
        let methods = case.methods.iter().map(|one| ToldMethod {
            label: tables::method(recipe, &one.method),
            letters: tables::letters(&one.rounds),
            answer: &one.answer,
            page: page(&one.method),
        });
        Told {
            title: format!(
                "{} {}, run {}",
                tables::dataset(recipe, &case.dataset),
                case.item,
                case.run
            ),
            stem: stem.to_owned(),
            options: options.to_vec(),
            gold: &case.gold,
            methods: methods.collect(),
        }
    };
    results.cases.iter().map(told).collect()
}

fn methods<'a>(recipe: &'a Recipe, cells: &[(Cell<'_>, Contents)]) -> Vec<Method<'a>> {
    let method = |method: &'a MethodEntry| {
        let mut of_method = cells.iter().filter(|(cell, _)| cell.method.name == method.name);
        let plan = of_method.next().map(|(_, contents)| &contents.plan);
        let settings = plan.map(|plan| &plan.settings).unwrap_or(&method.settings);
        let members = plan.iter().flat_map(|plan| &plan.panel);
        let models: Vec<String> =
            members.map(|member| format!("{}: {}", member.agent, member.backbone)).collect();
        Method {
            label: &method.label,
            system: &method.system,
            settings: settings
                .iter()
                .map(|(key, value)| match value.as_str() {
                    Some(text) => format!("{key}={text}"),
                    None => format!("{key}={value}"),
                })
                .collect(),
            models: models.join(", "),
        }
    };
    recipe.method.iter().map(method).collect()
}

fn links(recipe: &Recipe, results: &RecipeResults, cells: &[(Cell<'_>, Contents)]) -> Vec<Link> {
    let link = |(cell, _): &(Cell<'_>, Contents)| {
        let result = tables::cell(results, &cell.method.name, &cell.dataset.name);
        let head = result.map_or("", |result| &result.head);
        Link {
            page: page_of(cell),
            label: format!(
                "{} on {}",
                match result.filter(|result| result.notes.is_some()) {
                    Some(result) => notes::full(recipe, result),
                    None => tables::method(recipe, &cell.method.name).to_owned(),
                },
                tables::dataset(recipe, &cell.dataset.name)
            ),
            head: head.get(..12).unwrap_or(head).to_owned(),
        }
    };
    cells.iter().map(link).collect()
}
