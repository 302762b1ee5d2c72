//! The page and the tables of a run, on questions or on notes, from its directory's contents alone.

mod making;
mod notes;
mod page;
mod questions;

pub use page::file;

use itertools::Itertools;
use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::ReportError;
use super::kit;
use super::table::{Kind, Labelled, Table};
use crate::analysis::conditions::{self, Conditions};
use crate::analysis::health::{self, ParseHealth};
use crate::analysis::notes::CorrectionScorer;
use crate::analysis::risk::Risk;
use crate::data::{Item, ItemKind};
use crate::experiment::contents::Contents;

const PAGE: kit::Page =
    kit::Page { template: "run.html", style: "", script: include_str!("page.js") };

/// What a run came to.
#[derive(Default, Serialize)]
struct Results {
    /// The figure that stands first, and its standard deviation over the runs.
    headline: Option<(String, Option<String>)>,
    /// What the headline is a figure of.
    about: String,
    /// Sentences on how the run was made.
    method: Vec<String>,
    /// The same as under tables that stand alone.
    conditions: Vec<String>,
    /// Where too many replies could not be read, or say nothing.
    warnings: Vec<String>,
    /// What is missing from the figures.
    missing: Option<String>,
    risk: Vec<String>,
    /// What several tables say.
    notes: Vec<String>,
    #[serde(skip)]
    tables: Vec<Table>,
}

/// The pages, each with the name of its file, the one with the figures first; equal contents give equal bytes, in whatever order records lie.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(
    contents: &Contents,
    scorer: &CorrectionScorer,
) -> Result<Vec<(String, String)>, ReportError> {
    render_parts(contents, scorer, page::CASES)
}

pub(super) fn render_parts(
    contents: &Contents,
    scorer: &CorrectionScorer,
    cases_per_page: usize,
) -> Result<Vec<(String, String)>, ReportError> {
    let mut results = results(contents, scorer);
    results.notes = said_by_several(&mut results.tables);
    let titled = |table: &Table| {
        context! {
            title => &table.title,
            // Words in cells, or many columns, need the page's width.
            wide => table.columns.len() > 6 || table.columns[1..].iter().any(|one| one.kind == Kind::Text),
            html => Value::from_safe_string(table.html()),
        }
    };
    let shared = context! {
        results => Value::from(Serde(&results)),
        tables => results.tables.iter().map(titled).collect::<Vec<_>>(),
    };
    let pages = page::pages(contents, &scorer.neural, cases_per_page);
    let render = |(index, page): (usize, Value)| {
        let text = PAGE.render(context! { page, ..shared.clone() })?;
        Ok((page::file(index + 1), text))
    };
    pages.into_iter().enumerate().map(render).collect()
}

/// What several tables say, taken out of each: it stands once, below them.
fn said_by_several(tables: &mut [Table]) -> Vec<String> {
    let notes = tables.iter().flat_map(|table| &table.notes);
    let several: Vec<String> = notes.duplicates().cloned().collect();
    tables.iter_mut().for_each(|table| table.notes.retain(|note| !several.contains(note)));
    several
}

/// The tables of the same contents.
pub fn tables(contents: &Contents, scorer: &CorrectionScorer) -> Vec<Table> {
    let Results { mut tables, warnings, conditions, .. } = results(contents, scorer);
    for table in &mut tables {
        table.notes.extend(warnings.iter().chain(&conditions).cloned());
    }
    tables
}

fn results(contents: &Contents, scorer: &CorrectionScorer) -> Results {
    let plan = &contents.plan;
    let results = match kind(contents) {
        ItemKind::Questions => questions::results(contents),
        ItemKind::Notes => notes::results(contents, scorer),
    };
    let conditions = conditions::say(&[(String::new(), Conditions::of(plan))]);
    Results { conditions, risk: risk(contents), ..results }
}

/// From which score on so few are wrong that one may act upon the rest; empty where the cases prove none.
fn risk(contents: &Contents) -> Vec<String> {
    let found = Risk::of(contents);
    let mut said = found.in_words();
    if !said.is_empty() {
        said.push(format!(
            "Over {} cases; of those that ask nearly the same one counts. Each bound holds by itself, for new cases from where these come from, if score and share are chosen before one looks at it.",
            found.cases
        ));
    }
    said
}

/// The one row of a table of the run as a whole.
fn all_runs<T>(of: &T, health: Option<ParseHealth>) -> Labelled<'_, T> {
    Labelled { group: String::new(), label: "all runs".to_owned(), of, health }
}

/// How the replies were read, after a sentence on the figures.
fn read(health: Option<ParseHealth>) -> String {
    health.map_or(String::new(), |health| format!("; replies {health} % {}", health::SHARES))
}

/// What the items are, all of one kind: that of those that there are, or else what the system works on.
fn kind(contents: &Contents) -> ItemKind {
    match contents.texts.values().next() {
        Some(Item::Note(_)) => ItemKind::Notes,
        Some(Item::Question(_)) => ItemKind::Questions,
        None => contents.plan.which().entry().map_or(ItemKind::Questions, |entry| entry.takes),
    }
}
