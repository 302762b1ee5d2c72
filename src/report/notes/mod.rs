//! The page and the tables of a run on clinical notes, from its plan and records alone.

mod case;
mod correction;
mod diff;
mod figures;
#[cfg(test)]
mod fixtures;
mod flag;
mod method;
mod page;
mod passage;
mod stage;
pub mod tables;
#[cfg(test)]
mod tests;
mod voice;

use minijinja::context;
use minijinja::value::{Serde, Value};

use super::table::{Kind, Table};
use super::{ReportError, SCRIPT, STYLE, content_policy, environment};
use crate::analysis::notes::{CorrectionScorer, Prices};
use crate::data::{Format, ItemKind};
use crate::experiment::contents::Contents;
use crate::experiment::plan::Plan;

/// What a run's records do not hold and its figures need.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scoring {
    pub scorer: CorrectionScorer,
    pub prices: Prices,
}

/// Whether a plan's items are notes.
pub fn are_planned(plan: &Plan) -> bool {
    let format = plan.dataset.format.parse::<Format>();
    format.is_ok_and(|format| format.kind() == ItemKind::Notes)
}

/// The page; equal records give equal bytes.
///
/// # Errors
/// None but a bug in the templates.
pub fn render(
    contents: &Contents,
    scoring: &Scoring,
    ratings: &[Table],
) -> Result<String, ReportError> {
    let page = page::Page::new(contents, scoring);
    let environment = environment()?;
    let figures = figures::all(&page.figures);
    let tables = tables::all(&page.figures, &scoring.prices);
    let titled = |table: &Table| {
        context! {
            title => &table.title,
            // What has words in its cells, or many columns, needs the page's width.
            wide => table.columns.len() > 6 || table.columns[1..].iter().any(|one| one.kind == Kind::Text),
            html => Value::from_safe_string(table.html()),
        }
    };
    let context = context! {
        page => Value::from(Serde(&page)),
        figures => Value::from(Serde(&figures)),
        ratings => Value::from_safe_string(ratings.iter().map(Table::titled_html).collect()),
        tables => tables.iter().map(titled).collect::<Vec<_>>(),
        style => Value::from_safe_string(STYLE.into()),
        script => Value::from_safe_string(SCRIPT.into()),
        policy => Value::from_safe_string(content_policy::content_policy(SCRIPT)),
    };
    Ok(environment.get_template("notes.html")?.render(context)?)
}
