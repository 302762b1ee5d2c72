//! The page and the tables of a run, on questions or on notes, from its directory's contents alone.

mod making;
mod notes;
mod page;
mod questions;

pub use page::file;

use minijinja::context;
use minijinja::value::{Serde, Value};
use serde::Serialize;

use super::ReportError;
use super::kit;
use super::table::{Kind, Labelled, Table, explanations};
use crate::analysis::Outcomes;
use crate::analysis::conditions;
use crate::analysis::figures::{self, RunFigures};
use crate::analysis::health::ParseHealth;
use crate::analysis::metrics::over_runs::{Spread, plain, share};
use crate::analysis::notes::CorrectionScorer;
use crate::analysis::risk::Risk;
use crate::data::{Item, ItemKind};
use crate::experiment::contents::Contents;
use crate::record::count;

const PAGE: kit::Page =
    kit::Page { template: "run.html", style: "", script: include_str!("page.js") };

/// What a run came to.
#[derive(Default, Serialize)]
struct Results {
    /// What stands first: how much is right, or why nothing is.
    verdict: String,
    /// Sentences beside it.
    about: Vec<String>,
    /// Sentences on how the run was made.
    method: Vec<String>,
    /// Where too many replies could not be read, were cut off, or say nothing.
    warnings: Vec<String>,
    risk: Vec<String>,
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
    let results = results(contents, scorer);
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
        notes => Serde(explanations(&results.tables)),
    };
    let pages = page::pages(contents, &scorer.neural, cases_per_page);
    let render = |(index, page): (usize, Value)| {
        let text = PAGE.render(context! { page, ..shared.clone() })?;
        Ok((page::file(index + 1), text))
    };
    pages.into_iter().enumerate().map(render).collect()
}

/// The tables of the same contents, and what is said of all of them.
pub fn tables(contents: &Contents, scorer: &CorrectionScorer) -> (Vec<Table>, Vec<String>) {
    let Results { tables, warnings, method, .. } = results(contents, scorer);
    (tables, [warnings, method].concat())
}

fn results(contents: &Contents, scorer: &CorrectionScorer) -> Results {
    let plan = &contents.plan;
    let (noun, mut results) = match kind(contents) {
        ItemKind::Questions => ("question", questions::results(contents)),
        ItemKind::Notes => ("note", notes::results(contents, scorer)),
    };
    results.verdict =
        verdict(contents).unwrap_or_else(|| match contents.items.records.is_empty() {
            true => format!("No {noun} is finished yet"),
            false => format!("The {noun}s have no gold, so none is right or wrong"),
        });
    if let Some(health) = ParseHealth::of(&contents.calls.records) {
        results.about.push(format!("{:.1} % of the replies could be read.", health.read()));
    }
    results.warnings = figures::warnings(contents);
    results.method.extend(conditions::say(&[(String::new(), conditions::of(plan))]));
    Results { risk: risk(contents), ..results }
}

/// `2 of 8 right (25 %, 95 % interval 3 to 65 %)`; `None` without gold.
fn verdict(contents: &Contents) -> Option<String> {
    let lines = contents.outcomes();
    let graded: Vec<bool> = lines.values().filter_map(|line| line.correct()).collect();
    let (n, n_right) = (graded.len(), graded.iter().filter(|right| **right).count());
    let digits = usize::from(n >= 100);
    let percent = |share: f64| plain(100.0 * share, digits);
    let figures = RunFigures::of(&Outcomes::of(contents));
    let over_runs = figures.accuracy.as_ref().map(Spread::from);
    let over = over_runs.and_then(|one| one.n).filter(|n| *n > 1);
    let over = over.map_or(String::new(), |n| format!(" over {}", count(n, "run")));
    let spread = over_runs.and_then(|one| one.deviation());
    let spread = spread.map_or(String::new(), |std| format!(" ± {}", percent(std)));
    let ends = figures.interval.and_then(|one| one.low.zip(one.high));
    let ends = ends.map_or(String::new(), |(low, high)| {
        format!(", 95 % interval {} to {} %", percent(low), percent(high))
    });
    let mean = percent(share(n_right, n)?);
    Some(format!("{n_right} of {n} right{over} ({mean}{spread} %{ends})"))
}

/// From which score on so few are wrong that one may act upon the rest; empty where the cases prove none.
fn risk(contents: &Contents) -> Vec<String> {
    let found = Risk::of(contents);
    let mut said = found.in_words();
    if !said.is_empty() {
        said.push(format!(
            "Over {} cases; of those that ask nearly the same, one counts. Each bound holds alone, for new cases from the same source, if score and share were chosen before looking.",
            found.cases
        ));
    }
    said
}

/// The one row of a table of the run as a whole.
fn all_runs<T>(of: &T, health: Option<ParseHealth>) -> Labelled<'_, T> {
    Labelled { group: String::new(), label: "all runs".to_owned(), of, health }
}

/// What the items are, all of one kind: that of those that there are, or else what the system works on.
fn kind(contents: &Contents) -> ItemKind {
    match contents.texts.values().next() {
        Some(Item::Note(_)) => ItemKind::Notes,
        Some(Item::Question(_)) => ItemKind::Questions,
        None => contents.plan.which().entry().map_or(ItemKind::Questions, |entry| entry.takes),
    }
}
