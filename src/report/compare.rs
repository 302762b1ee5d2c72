//! The page of runs side by side: how they differ, and every question with what each of them answered.

use itertools::Itertools;
use minijinja::context;

use super::ReportError;
use super::beside::{self, Column, difference};
use super::table::Labelled;
use crate::analysis::comparison::Comparison;
use crate::analysis::health;

/// The page of a comparison; `columns` are its runs as they were read, `ids` the items that all of them have.
///
/// # Errors
/// A template that cannot be filled in.
pub fn render(
    comparison: &Comparison,
    columns: &[Column<'_>],
    ids: &[String],
) -> Result<String, ReportError> {
    let Comparison { dataset, kind, .. } = comparison;
    let verdict = comparison.pairs.iter().map(|pair| match &pair.difference {
        Some(found) => difference(&pair.other, &pair.first, found),
        None => format!("{} against {}: no item has gold.", pair.other, pair.first),
    });
    let rows = comparison.runs.iter().map(|row| {
        let (group, label, health) = (String::new(), row.run.clone(), row.figures.parse_health);
        Labelled { group, label, of: row, health }
    });
    let mut tables = comparison.tables();
    let warnings = comparison.warnings();
    let notes = tables.iter_mut().filter(|table| table.name == "differences");
    let mut method = notes.flat_map(|table| std::mem::take(&mut table.notes)).collect_vec();
    method.retain(|line| !warnings.contains(line));
    tables.extend(health::table(&rows.collect_vec()));
    let page = context! {
        kicker => "wardround compare",
        title => format!("{} runs on {dataset}", columns.len()),
        text => columns.iter().map(|column| &column.label).join(", "),
        about => std::mem::replace(&mut tables[0].title, "Accuracy".to_owned()),
        version => columns.first().map_or("", |one| &*one.contents.plan.version),
        synthetic => comparison.synthetic,
        verdict => verdict.collect_vec(),
        warnings,
        items => [beside::items(&kind.to_string(), ids, columns)],
        links => "Each answer leads to its case on the page of its run, which must stay where it is, seen from this file.",
        method,
        making => "",
        readings => Vec::<String>::new(),
    };
    beside::render(&tables, page)
}
