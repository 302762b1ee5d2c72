//! The table of what guarding gains: ours, then the paper's rows, with what it prints beside what its own columns give.

use super::improvement::{Gain, ImprovementRow};
use super::notes::full;
use super::results::RecipeResults;
use super::tables::{cell, dataset, read};
use crate::analysis::metrics::number::signed;
use crate::analysis::table::Table;
use crate::experiment::recipe::paper::PublishedEntry;
use crate::experiment::recipe::{NoteColumn, Recipe};

/// What the printed percentage may differ from that of the printed columns: both are rounded.
const ROUNDING: f64 = 0.3;

#[derive(Clone, Copy)]
enum Line<'a> {
    Ours(&'a ImprovementRow),
    Papers(&'a PapersGain<'a>),
}

impl<'a> Line<'a> {
    fn ours(self) -> Option<&'a ImprovementRow> {
        match self {
            Line::Ours(row) => Some(row),
            Line::Papers(_) => None,
        }
    }

    fn dataset(self) -> &'a str {
        match self {
            Line::Ours(row) => &row.dataset,
            Line::Papers(gain) => gain.dataset,
        }
    }

    /// Whether it is the paper's row of a baseline.
    fn is_alone(self) -> bool {
        matches!(self, Line::Papers(papers) if papers.against.is_none())
    }

    /// Over the pairs; the paper has one figure a column, and its figures look like those.
    fn of_pairs(self) -> Option<&'a Gain> {
        match self {
            Line::Ours(row) => row.pairs.as_ref(),
            Line::Papers(papers) => Some(&papers.gain),
        }
    }
}

/// A row of the paper against another, over the columns that both have; or one of which an average is printed, alone.
struct PapersGain<'a> {
    dataset: &'a str,
    row: &'a PublishedEntry,
    against: Option<&'a PublishedEntry>,
    columns: Vec<NoteColumn>,
    gain: Gain,
}

impl PapersGain<'_> {
    fn all(recipe: &Recipe) -> Vec<PapersGain<'_>> {
        let mut gains = Vec::new();
        for dataset in recipe.dataset.iter().map(|dataset| dataset.name.as_str()) {
            for row in &recipe.published {
                let against = row.against.as_ref();
                let mut others = recipe.published.iter();
                let against = others.find(|other| Some(&other.label) == against);
                gains.extend(PapersGain::of(dataset, row, against));
            }
        }
        gains
    }

    fn of<'a>(
        dataset: &'a str,
        row: &'a PublishedEntry,
        against: Option<&'a PublishedEntry>,
    ) -> Option<PapersGain<'a>> {
        let own = row.figures.get(dataset)?;
        let base = match against {
            Some(against) => against.figures.get(dataset)?,
            None => row.gain.get(dataset).and(Some(own))?,
        };
        let columns = own.keys().copied().filter(|column| base.contains_key(column));
        let columns: Vec<NoteColumn> = columns.collect();
        let values = |of: &std::collections::BTreeMap<NoteColumn, f64>| {
            columns.iter().filter_map(|column| of.get(column).copied()).collect::<Vec<f64>>()
        };
        let mut gain = Gain::of(&values(own), &values(base));
        gain.delta_percent = gain.delta_percent.filter(|_| against.is_some());
        Some(PapersGain { dataset, row, against, columns, gain })
    }

    /// That the printed percentage is not the one of the printed columns.
    fn contradiction(&self, recipe: &Recipe) -> Option<String> {
        let printed = self.row.gain.get(self.dataset)?.delta_percent?;
        let found = self.gain.delta_percent?;
        let (label, dataset) = (&self.row.label, dataset(recipe, self.dataset));
        ((printed - found).abs() > ROUNDING).then(|| {
            format!(
                "{label} on {dataset}: the paper prints {} %; its own columns give {} %.",
                signed(printed, 1),
                signed(found, 1)
            )
        })
    }
}

/// `None` without a method of ours that is set against another.
pub fn table(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let full = |name: &str, dataset: &str| {
        let found = cell(results, name, dataset);
        found.map_or(name.to_owned(), |cell| full(recipe, cell))
    };
    let papers = PapersGain::all(recipe);
    let lines = recipe.dataset.iter().flat_map(|dataset| {
        let ours = results.improvements.iter().filter(|row| row.dataset == dataset.name);
        let papers = papers.iter().filter(|gain| gain.dataset == dataset.name);
        ours.map(Line::Ours).chain(papers.map(Line::Papers))
    });
    let p = |value: f64| format!("{value:.2e}");
    let printed = |line: Line<'_>| match line {
        Line::Ours(_) => None,
        Line::Papers(papers) => papers.row.gain.get(papers.dataset).copied(),
    };
    let mut table = Table::of("improvements", "What guarding gains", lines)
        .grouped_by(|line| dataset(recipe, line.dataset()).to_owned())
        .text("method", |line| match line {
            Line::Ours(row) => {
                let [own, base] = [&row.method, &row.baseline].map(|name| full(name, &row.dataset));
                format!("{own} against {base}")
            }
            Line::Papers(papers) => {
                let against = papers.against.map(|against| format!(" against {}", against.label));
                format!("paper: {}{}", papers.row.label, against.unwrap_or_default())
            }
        })
        .replies(|line| line.ours().and_then(|row| read(results, &row.method, &row.dataset)))
        .replies_of_the_other(|line| {
            line.ours().and_then(|row| read(results, &row.baseline, &row.dataset))
        })
        .interval("difference by note", |line| line.ours().map(|row| &row.difference));
    let of_pairs: for<'a> fn(Line<'a>) -> Option<&'a Gain> = |line| line.of_pairs();
    let of_all: for<'a> fn(Line<'a>) -> Option<&'a Gain> =
        |line| line.ours().map(|row| &row.composites);
    for (over, gain) in [("pairs", of_pairs), ("composites", of_all)] {
        let t = move |line| gain(line)?.paired_t;
        table = table
            .under(over)
            .number("average", |line| Some(gain(line)?.average[0]))
            .number("its baseline's", |line| {
                Some(gain(line)?.average[1]).filter(|_| !line.is_alone())
            })
            .text("Δ%", |line| Some(signed(gain(line)?.delta_percent?, 1) + " %"))
            .text("P, paired t, two-sided", |line| Some(p(t(line)?.two_sided)))
            .text("P, paired t, one-sided", |line| Some(p(t(line)?.one_sided)));
    }
    table = table
        .under("bootstrap over notes")
        .text("P, two-sided", |line| line.ours().map(|row| p(row.bootstrap.two_sided)))
        .text("P, one-sided", |line| line.ours().map(|row| p(row.bootstrap.one_sided)));
    if papers.iter().any(|gain| gain.row.gain.contains_key(gain.dataset)) {
        table = table
            .under("as the paper prints it")
            .text("average", |line| Some(format!("{:.3}", printed(line)?.average?)))
            .text("Δ%", |line| Some(signed(printed(line)?.delta_percent?, 1) + " %"))
            .text("P", |line| Some(p(printed(line)?.p_value?)));
    }
    let contradictions = papers.iter().filter_map(|gain| gain.contradiction(recipe));
    let table = table
        .under("")
        .text("columns", |line| {
            let columns = match line {
                Line::Ours(row) => &row.columns,
                Line::Papers(papers) => &papers.columns,
            };
            columns.iter().map(|column| column.label()).collect::<Vec<_>>().join(", ")
        })
        .note("Averages over the columns named at the end, which are the paper's own: corrections over the pairs, and over all notes (composites). Δ% is their sum over the baseline's, less 1. One-sided P-values are against no gain or a loss. The difference by note and the bootstrap are of the composites. Of the paper's rows all is computed from its columns, but for what stands as it prints it.")
        .notes(contradictions)
        .build();
    (!results.improvements.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests;
