//! The table of what guarding gains: ours, then the paper's rows, with what it prints beside what its own columns give.

use itertools::Itertools;

use super::improvement::{Gain, ImprovementRow};
use super::notes::full;
use super::results::RecipeResults;
use super::tables::{cell, dataset};
use crate::analysis::metrics::bootstrap::{Estimate, PValues};
use crate::analysis::metrics::over_runs::signed;
use crate::analysis::table::Table;
use crate::experiment::recipe::paper::{PrintedGain, PublishedEntry};
use crate::experiment::recipe::{NoteColumn, Recipe};

/// What the printed percentage may differ from that of the printed columns: both are rounded.
const ROUNDING: f64 = 0.3;
/// What the labels of the paper's rows begin with.
const PAPER: &str = "paper: ";

/// One of ours or of the paper's against another, over the columns that both have.
struct Row<'a> {
    dataset: &'a str,
    label: String,
    /// `None` of a row of the paper's of which an average is printed, alone.
    against: Option<String>,
    columns: Vec<NoteColumn>,
    /// Over the pairs; the paper has one figure a column, and its figures look like those.
    pairs: Option<Gain>,
    composites: Option<Gain>,
    difference: Option<&'a Estimate>,
    bootstrap: Option<&'a PValues>,
    printed: PrintedGain,
}

fn ours<'a>(recipe: &Recipe, results: &RecipeResults, row: &'a ImprovementRow) -> Row<'a> {
    let full = |name: &str| {
        let found = cell(results, name, &row.dataset);
        found.map_or(name.to_owned(), |cell| full(recipe, cell))
    };
    Row {
        dataset: &row.dataset,
        label: full(&row.method),
        against: Some(full(&row.baseline)),
        columns: row.columns.clone(),
        pairs: row.pairs.clone(),
        composites: Some(row.composites.clone()),
        difference: Some(&row.difference),
        bootstrap: Some(&row.bootstrap),
        printed: PrintedGain::default(),
    }
}

fn papers<'a>(recipe: &Recipe, dataset: &'a str, row: &PublishedEntry) -> Option<Row<'a>> {
    let mut others = recipe.published.iter();
    let against = others.find(|other| Some(&other.label) == row.against.as_ref());
    let (own, printed) = (row.figures.get(dataset)?, row.gain.get(dataset));
    let base = match against {
        Some(against) => against.figures.get(dataset)?,
        None => printed.and(Some(own))?,
    };
    let both = own.iter().filter_map(|(column, own)| Some((*column, (*own, *base.get(column)?))));
    let (columns, values): (Vec<_>, Vec<_>) = both.unzip();
    let (own, base): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();
    let mut gain = Gain::of(&own, &base);
    gain.delta_percent = gain.delta_percent.filter(|_| against.is_some());
    Some(Row {
        dataset,
        label: format!("{PAPER}{}", row.label),
        against: against.map(|against| against.label.clone()),
        columns,
        pairs: Some(gain),
        composites: None,
        difference: None,
        bootstrap: None,
        printed: printed.copied().unwrap_or_default(),
    })
}

/// That the printed percentage is not the one of the printed columns.
fn contradiction(recipe: &Recipe, row: &Row<'_>) -> Option<String> {
    let (printed, found) = (row.printed.delta_percent?, row.pairs.as_ref()?.delta_percent?);
    let label = row.label.trim_start_matches(PAPER);
    ((printed - found).abs() > ROUNDING).then(|| {
        format!(
            "{label} on {}: the paper prints {} %; its own columns give {} %.",
            dataset(recipe, row.dataset),
            signed(printed, 1),
            signed(found, 1)
        )
    })
}

/// `None` without a method of ours that is set against another.
pub fn table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let mut rows = Vec::new();
    for one in &recipe.dataset {
        let own = results.improvements.iter().filter(|row| row.dataset == one.name);
        rows.extend(own.map(|row| ours(recipe, results, row)));
        rows.extend(recipe.published.iter().filter_map(|row| papers(recipe, &one.name, row)));
    }
    let p = |value: f64| format!("{value:.2e}");
    let percent = |value: f64| signed(value, 1) + " %";
    let mut table = Table::of("improvements", "What guarding gains", &rows)
        .grouped_by(|row| dataset(recipe, row.dataset).to_owned())
        .text("method", |row| {
            let against = row.against.as_ref().map(|against| format!(" against {against}"));
            row.label.clone() + &against.unwrap_or_default()
        })
        .interval("difference by note", |row| row.difference);
    type OfRow = fn(&Row<'_>) -> Option<Gain>;
    let gains: [(&str, OfRow); 2] =
        [("pairs", |row| row.pairs.clone()), ("composites", |row| row.composites.clone())];
    for (over, gain) in gains {
        table = table
            .under(over)
            .number("average", |row| Some(gain(row)?.average[0]))
            .number("its baseline's", |row| {
                row.against.as_ref()?;
                Some(gain(row)?.average[1])
            })
            .text("Δ%", |row| Some(percent(gain(row)?.delta_percent?)))
            .text("P, paired t, two-sided", |row| Some(p(gain(row)?.paired_t?.two_sided)))
            .text("P, paired t, one-sided", |row| Some(p(gain(row)?.paired_t?.one_sided)));
    }
    table = table
        .under("bootstrap over notes")
        .text("P, two-sided", |row| Some(p(row.bootstrap?.two_sided)))
        .text("P, one-sided", |row| Some(p(row.bootstrap?.one_sided)));
    if rows.iter().any(|row| row.printed != PrintedGain::default()) {
        table = table
            .under("as the paper prints it")
            .text("average", |row| Some(format!("{:.3}", row.printed.average?)))
            .text("Δ%", |row| Some(percent(row.printed.delta_percent?)))
            .text("P", |row| Some(p(row.printed.p_value?)));
    }
    let table = table
        .under("")
        .text("columns", |row| row.columns.iter().map(|column| column.label()).join(", "))
        .note("Averages over the columns named at the end, which are the paper's own: corrections over the pairs, and over all notes (composites). Δ% is their sum over the baseline's, less 1. One-sided P-values are against no gain or a loss. The difference by note and the bootstrap are of the composites. Of the paper's rows all is computed from its columns, but for what stands as it prints it.")
        .notes(rows.iter().filter_map(|row| contradiction(recipe, row)))
        .build();
    (!results.improvements.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests;
