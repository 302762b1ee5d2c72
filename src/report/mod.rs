//! `report.html`: one self-contained page about a run, rendered from its plan and records alone.
//!
//! The page opens from disk and asks for nothing. What models wrote is hostile input here: it reaches the page only
//! through `escape`, and the page's own content policy forbids every script but ours.

mod accuracy;
mod card;
mod case;
pub(crate) mod content_policy;
mod costs;
#[cfg(test)]
mod debates;
pub(crate) mod escape;
pub mod figure;
#[cfg(test)]
mod fixtures;
mod flag;
mod made;
mod making;
pub mod notes;
mod page;
mod panel;
mod prompts;
mod question;
mod read;
pub mod recipe;
mod reliability;
mod round;
mod step;
pub mod table;
#[cfg(test)]
mod tests;
mod vote;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Serde, Value};
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use thiserror::Error;

use table::Table;

use crate::analysis::metrics::MetricsError;
use crate::diagnosis::{Blame, Diagnosis};
use crate::experiment::plan::Plan;
use crate::record::{AnswerLine, CallLine};

pub(crate) const STYLE: &str = include_str!("report.css");
const SCRIPT: &str = include_str!("report.js");
const TEMPLATES: [(&str, &str); 12] = [
    ("layout.html", include_str!("layout.html")),
    ("page.html", include_str!("page.html")),
    ("notes.html", include_str!("notes/page.html")),
    ("note.html", include_str!("notes/case.html")),
    ("voice.html", include_str!("notes/voice.html")),
    ("recipe.html", include_str!("recipe/page.html")),
    ("accuracy.html", include_str!("accuracy.html")),
    ("making.html", include_str!("making.html")),
    ("case.html", include_str!("case.html")),
    ("round.html", include_str!("round.html")),
    ("card.html", include_str!("card.html")),
    ("made.html", include_str!("made.html")),
];

/// Why a report could not be written.
#[derive(Debug, Error)]
pub enum ReportError {
    #[error("cannot render the report: {0:#}")]
    Template(#[from] minijinja::Error),
    #[error("cannot draw the report: {0}")]
    Metrics(#[from] MetricsError),
    #[error("cannot write the page's data: {0}")]
    Data(#[from] serde_json::Error),
}

impl Diagnosis for ReportError {
    fn blame(&self) -> Blame {
        match self {
            ReportError::Template(_) | ReportError::Data(_) => Blame::Machine,
            ReportError::Metrics(error) => error.blame(),
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            ReportError::Template(_) | ReportError::Data(_) => {
                Some("the page's templates are part of the binary; please report this".into())
            }
            ReportError::Metrics(error) => error.hint(),
        }
    }
}

/// The page for the records of a run, in any order; equal records give equal bytes. `ratings` are what clinicians said of it.
///
/// An item that was tried again may have several records: its answered one is shown, else one of its errors.
pub fn render<'a>(
    plan: &'a Plan,
    items: impl IntoIterator<Item = &'a AnswerLine>,
    calls: &'a [CallLine],
    ratings: &[Table],
) -> Result<String, ReportError> {
    let page = page::Page::new(plan, items, calls)?;
    let environment = environment()?;
    let drawings = [
        page.accuracy.drawing(),
        page.calibration
            .as_ref()
            .map(|one| reliability::drawing("All runs", one)),
    ];
    let drawings = drawings.map(|drawing| drawing.map_or(String::new(), |one| one.svg()));
    let numbers: String = page_tables(&page).iter().skip(1).map(Table::html).collect();
    let context = context! {
        page => Value::from(Serde(&page)),
        drawings => drawings.map(Value::from_safe_string).to_vec(),
        ratings => Value::from_safe_string(ratings.iter().map(Table::titled_html).collect()),
        numbers => Value::from_safe_string(numbers),
        style => Value::from_safe_string(STYLE.into()),
        script => Value::from_safe_string(SCRIPT.into()),
        policy => Value::from_safe_string(content_policy::content_policy(SCRIPT)),
    };
    Ok(environment.get_template("page.html")?.render(context)?)
}

/// The tables of the same records: accuracy, calibration, cost.
///
/// # Errors
/// A confidence that is none.
pub fn tables<'a>(
    plan: &'a Plan,
    items: impl IntoIterator<Item = &'a AnswerLine>,
    calls: &'a [CallLine],
) -> Result<Vec<Table>, ReportError> {
    Ok(page_tables(&page::Page::new(plan, items, calls)?))
}

fn page_tables(page: &page::Page) -> Vec<Table> {
    let all = || (String::new(), "all runs".to_owned());
    let calibration = page.calibration.iter();
    let calibration = calibration.map(|one| reliability::table(&[(all().0, all().1, one)]));
    let cost = page.cost.iter();
    let cost = cost.map(|one| costs::table(&[(all().0, all().1, one)]));
    let accuracy = [page.accuracy.table()].into_iter();
    accuracy.chain(calibration).chain(cost).collect()
}

pub(crate) fn environment() -> Result<Environment<'static>, minijinja::Error> {
    let mut environment = Environment::new();
    environment.set_syntax(
        SyntaxConfig::builder()
            .trim_blocks(true)
            .lstrip_blocks(true)
            .build()?,
    );
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_formatter(escape::write_value);
    environment.add_filter("grouped", grouped);
    for (name, source) in TEMPLATES {
        environment.add_template(name, source)?;
    }
    Ok(environment)
}

/// A count with a comma after every three digits.
fn grouped(count: u64) -> String {
    let digits = count.to_string();
    let mut grouped = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}
