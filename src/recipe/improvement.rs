//! What one method on notes gains over another (MedGuards, Tables 2, 3 and 11): Δ%, and two P-values, for the paper does not name its test.

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::Recipe;
use super::analysis::{CellOutcomes, on_dataset};
use super::notes::full;
use super::paper::{COLUMNS, PrintedGain, PublishedEntry};
use super::results::RecipeResults;
use super::tables::{cell, dataset};
use crate::analysis::metrics::bootstrap::{self, Estimate, run_means};
use crate::analysis::metrics::kpcs::ALPHA;
use crate::analysis::metrics::over_runs::{mean, signed};
use crate::analysis::metrics::significance::{PairedT, paired_t};
use crate::analysis::notes::{CorrectionScorer, Corrections, Measure, verdict};
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::{Cell, Table};

/// A method compared with its baseline, over the columns that both have.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ImprovementRow {
    pub dataset: String,
    pub method: String,
    pub baseline: String,
    /// The paper's own columns, those without weights of metrics left out: KPCS is one in Table 2 alone.
    pub columns: Vec<Measure>,
    /// Corrections over the pairs; `null` where a run of either has no pair.
    pub pairs: Option<Gain>,
    /// Corrections over all notes: 1 where neither side corrects, 0 where one does.
    pub composites: Gain,
    /// Of the notes: a note's value is the mean of its columns' composites. Near-duplicates are drawn together.
    pub difference: Estimate,
    /// Two-sided, of the same bootstrap. Earlier versions wrote another.
    #[serde(default)]
    pub p_value: Option<f64>,
}

/// What is gained over the columns' means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gain {
    /// The mean over the columns, of the method and of the baseline.
    pub average: [f64; 2],
    /// The sum of the columns over the baseline's, less 1, in percent; `null` where the baseline's is 0.
    pub delta_percent: Option<f64>,
    /// Over the differences of the columns; `null` where they are too few, or equal.
    pub paired_t: Option<PairedT>,
}

impl Gain {
    /// From each column's mean, of the method and of the baseline.
    pub(super) fn of(columns: &[[f64; 2]]) -> Gain {
        let sum = |side: usize| columns.iter().map(|column| column[side]).sum::<f64>();
        let (own, base, count) = (sum(0), sum(1), columns.len() as f64);
        let differences: Vec<f64> = columns.iter().map(|[own, base]| own - base).collect();
        Gain {
            average: [own / count, base / count],
            delta_percent: (base > 0.0).then(|| 100.0 * (own / base - 1.0)),
            paired_t: paired_t(&differences),
        }
    }
}

/// The columns that the paper's own rows have on a dataset; all but KPCS where it has none there.
fn papers_columns(recipe: &Recipe, dataset: &str) -> Vec<Measure> {
    let rows = || recipe.published.iter().filter_map(|row| row.figures.get(dataset));
    let is_papers = |column: &Measure| match rows().next() {
        Some(_) => rows().any(|row| row.contains_key(column)),
        None => !matches!(column, Measure::Kpcs | Measure::Aggregate),
    };
    COLUMNS.into_iter().filter(is_papers).collect()
}

/// For every method that names another, over the same notes.
pub fn improvements(
    recipe: &Recipe,
    cells: &[CellOutcomes<'_>],
    scorer: &CorrectionScorer,
) -> Vec<ImprovementRow> {
    let row = |own: &CellOutcomes<'_>| {
        let against = own.cell.method.against.as_deref()?;
        let mut others = on_dataset(cells, own.dataset()).into_iter();
        let base = others.find(|other| other.method() == against)?;
        let are_same = own.outcomes.items == base.outcomes.items;
        are_same.then(|| improvement(recipe, own, base, scorer))?
    };
    cells.iter().filter_map(row).collect()
}

/// `None` without graded notes.
fn improvement(
    recipe: &Recipe,
    own: &CellOutcomes<'_>,
    base: &CellOutcomes<'_>,
    scorer: &CorrectionScorer,
) -> Option<ImprovementRow> {
    let corrections = [own, base].map(|one| Corrections::of(&one.outcomes, scorer));
    let both = |name: Measure| {
        let own = Column::of(name, &own.outcomes, &corrections[0])?;
        Some((name, [own, Column::of(name, &base.outcomes, &corrections[1])?]))
    };
    let (names, columns): (Vec<Measure>, Vec<[Column; 2]>) =
        papers_columns(recipe, own.dataset()).into_iter().filter_map(both).unzip();
    let count = columns.len() as f64;
    let of_note = |note: usize| {
        let differences = columns.iter().map(|[own, base]| own.by_note[note] - base.by_note[note]);
        differences.map(|difference| difference / count).sum()
    };
    let by_note: Vec<f64> = (0..columns.first()?[0].by_note.len()).map(of_note).collect();
    let composites: Vec<[f64; 2]> =
        columns.iter().map(|both| both.each_ref().map(|one| one.composite)).collect();
    let over_pairs: Option<Vec<[f64; 2]>> =
        columns.iter().map(|[own, base]| Some([own.over_pairs?, base.over_pairs?])).collect();
    let units = own.outcomes.units();
    Some(ImprovementRow {
        dataset: own.dataset().to_owned(),
        method: own.method().to_owned(),
        baseline: base.method().to_owned(),
        columns: names,
        pairs: over_pairs.map(|means| Gain::of(&means)),
        composites: Gain::of(&composites),
        difference: bootstrap::mean(&by_note, &units)?,
        p_value: bootstrap::p_value(&by_note, &units),
    })
}

/// One column of MedGuards' tables, of one cell.
struct Column {
    /// Each note's mean over the runs, from 0 to 1. Of a correction: its score, 1 where neither side corrects, 0 where one does.
    by_note: Vec<f64>,
    /// The mean of these: of a correction, the composite.
    composite: f64,
    /// Of a correction, the mean over the pairs, averaged over the runs, `None` where a run has no pair; else the same.
    over_pairs: Option<f64>,
}

impl Column {
    /// `None` without its weights, and without graded notes.
    fn of(name: Measure, outcomes: &Outcomes<'_>, corrections: &Corrections<'_>) -> Option<Column> {
        if let Measure::Detection | Measure::Localisation = name {
            let right = outcomes.notes().map(|note| match name {
                Measure::Localisation => verdict(note).is_located,
                _ => verdict(note).is_detected,
            });
            let by_note = run_means(&right);
            let composite = mean(&by_note)?;
            return Some(Column { by_note, composite, over_pairs: Some(composite) });
        }
        let measure = name.as_published(outcomes.is_medec());
        let by_note = corrections.parts(measure, ALPHA)?.by_item(|one| one.0);
        Some(Column {
            composite: mean(&by_note)?,
            by_note,
            over_pairs: corrections.measured(measure, ALPHA)?.subset.map(|subset| subset.mean),
        })
    }
}

/// What the printed percentage may differ from that of the printed columns: both are rounded.
const ROUNDING: f64 = 0.3;

/// One of ours or of the paper's against another, over the columns that both have.
struct Row<'a> {
    dataset: &'a str,
    label: String,
    /// `None` of a row of the paper's of which an average is printed, alone.
    against: Option<String>,
    columns: Vec<Measure>,
    /// Over the pairs; the paper has one figure a column, and its figures look like those.
    pairs: Option<Gain>,
    ours: Option<&'a ImprovementRow>,
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
        pairs: row.pairs,
        ours: Some(row),
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
    let both = own.iter().filter_map(|(column, own)| Some((*column, [*own, *base.get(column)?])));
    let (columns, values): (Vec<_>, Vec<_>) = both.unzip();
    let mut gain = Gain::of(&values);
    gain.delta_percent = gain.delta_percent.filter(|_| against.is_some());
    Some(Row {
        dataset,
        label: format!("paper: {}", row.label),
        against: against.map(|against| against.label.clone()),
        columns,
        pairs: Some(gain),
        ours: None,
        printed: printed.copied().unwrap_or_default(),
    })
}

/// That the printed percentage is not the one of the printed columns.
fn contradiction(recipe: &Recipe, row: &Row<'_>) -> Option<String> {
    let (printed, found) = (row.printed.delta_percent?, row.pairs?.delta_percent?);
    ((printed - found).abs() > ROUNDING).then(|| {
        let (printed, found) = (signed(printed, 1), signed(found, 1));
        let (label, dataset) = (&row.label, dataset(recipe, row.dataset));
        format!("{label} on {dataset}: {printed} % is printed; its own columns give {found} %.")
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
    let percent = |value: f64| Cell::Figures(signed(value, 1) + " %", vec![value.into()]);
    let mut table = Table::of("improvements", "What guarding gains", &rows)
        .grouped_by(|row| dataset(recipe, row.dataset).to_owned())
        .text("method", |row| {
            let against = row.against.as_ref().map(|against| format!(" against {against}"));
            row.label.clone() + &against.unwrap_or_default()
        })
        .interval("difference by note", |row| row.ours.map(|one| &one.difference))
        .text("P, bootstrap over notes", |row| Some(p(row.ours?.p_value?)));
    type OfRow = fn(&Row<'_>) -> Option<Gain>;
    let gains: [(&str, OfRow); 2] =
        [("pairs", |row| row.pairs), ("composites", |row| Some(row.ours?.composites))];
    for (over, gain) in gains {
        table = table
            .under(over)
            .number("average", |row| Some(gain(row)?.average[0]))
            .number("its baseline's", |row| {
                row.against.as_ref()?;
                Some(gain(row)?.average[1])
            })
            .figures("Δ%", ["delta percent"], |row| Some(percent(gain(row)?.delta_percent?)))
            .text("P, paired t", |row| Some(p(gain(row)?.paired_t?.two_sided)));
    }
    if rows.iter().any(|row| row.printed != PrintedGain::default()) {
        table = table
            .under("as the paper prints it")
            .text("average", |row| Some(format!("{:.3}", row.printed.average?)))
            .figures("Δ%", ["delta percent"], |row| Some(percent(row.printed.delta_percent?)))
            .text("P", |row| Some(p(row.printed.p_value?)));
    }
    let table = table
        .under("")
        .text("columns", |row| row.columns.iter().map(|column| column.label()).join(", "))
        .note("Averages over the columns named at the end, which are the paper's own: corrections over the pairs, and over all notes (composites). Δ% is their sum over the baseline's, less 1. P-values are two-sided. The difference by note and its P are of the composites. Of the paper's rows all is computed from its columns, but for what stands as it prints it.")
        .notes(rows.iter().filter_map(|row| contradiction(recipe, row)))
        .build();
    (!results.improvements.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod gain_tests {
    use super::*;

    #[test]
    fn the_gain_is_over_the_papers_own_columns() {
        let columns =
            |recipe: &str, dataset: &str| papers_columns(&Recipe::find(recipe).unwrap(), dataset);
        let mut six = COLUMNS.to_vec();
        six.retain(|column| *column != Measure::Aggregate);
        assert_eq!(columns("medguards-table2", "medec"), six);
        assert_eq!(columns("medguards-table3", "arabic"), six[..5]);
        assert_eq!(columns("medguards-table11", "medec"), six[..5]);
        // The paper has no rows there.
        assert_eq!(columns("medguards-table12", "medec"), six[..5]);
    }

    /// Table 2 of the paper, Gemini 2.0 Flash alone and guarded: +35.6 % as printed there is over its six columns.
    #[test]
    fn the_gain_is_of_the_sums() {
        let base = [0.589, 0.415, 0.379, 0.380, 0.395, 0.370];
        let with = [0.713, 0.609, 0.537, 0.549, 0.549, 0.472];
        let both: Vec<[f64; 2]> = with.into_iter().zip(base).map(<[f64; 2]>::from).collect();
        let gain = Gain::of(&both);
        let delta = 100.0 * (3.429 / 2.528 - 1.0);
        assert!((gain.delta_percent.unwrap() - delta).abs() < 1e-9, "{gain:?}");
        assert!((gain.average[0] - 3.429 / 6.0).abs() < 1e-12);
        assert_eq!(Gain::of(&[[0.5, 0.0]; 2]).delta_percent, None);
    }
}
