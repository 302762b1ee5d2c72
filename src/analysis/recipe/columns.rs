//! The paper's columns: ours, then its own rows.

use std::collections::BTreeMap;

use super::notes::Entry;
use super::results::CellResult;
use crate::analysis::metrics::kpcs::ALPHA;
use crate::analysis::notes::{Measure, Measured, NoteFigures};
use crate::analysis::table::{Cell, Table};
use crate::experiment::recipe::{NoteColumn, Recipe};

/// What is said where weights of metrics are missing.
const NO_WEIGHTS: &str = "BERTScore, BLEURT and what is made of them (AggregateScore, KPCS) were not computed where a dash stands: give the folder of their weights with --scorers DIR.";

/// A cell of ours, or what the paper has for a dataset.
struct Row<'a> {
    dataset: &'a str,
    method: String,
    ours: Option<&'a Entry<'a>>,
    papers: Option<&'a BTreeMap<NoteColumn, f64>>,
}

/// What a cell has of a column of corrections; ROUGE-1 is the one that the paper has for the dataset. `None` where it was not computed,
/// and of a cell on questions.
pub fn correction<'a>(
    recipe: &Recipe,
    cell: &'a CellResult,
    column: NoteColumn,
) -> Option<&'a Measured> {
    let correction = cell.notes.as_ref()?.correction.as_ref()?;
    let measure = match column {
        NoteColumn::Detection | NoteColumn::Localisation => return None,
        NoteColumn::Kpcs => {
            let of_alpha = correction.kpcs.iter().find(|one| one.alpha == ALPHA);
            return of_alpha.map(|one| &one.eq9);
        }
        NoteColumn::Rouge1 => {
            let mut datasets = recipe.dataset.iter();
            Measure::rouge1(datasets.any(|one| one.name == cell.dataset && one.format.is_medec()))
        }
        NoteColumn::BertScore => Measure::BertScore,
        NoteColumn::Bleurt => Measure::Bleurt,
        NoteColumn::Aggregate => Measure::Aggregate,
    };
    correction.measure(measure)
}

/// A share of all notes, or the mean of a measure over the pairs.
fn first(recipe: &Recipe, row: &Row<'_>, column: NoteColumn) -> Cell {
    let Some(entry) = row.ours else {
        return row.papers.and_then(|figures| figures.get(&column).copied()).into();
    };
    let NoteFigures { detection, localisation, .. } = entry.notes;
    match column {
        NoteColumn::Detection => detection.as_ref().map(|one| &one.accuracy).into(),
        NoteColumn::Localisation => localisation.as_ref().map(|one| &one.accuracy).into(),
        _ => correction(recipe, entry.cell, column).and_then(|one| one.subset.as_ref()).into(),
    }
}

pub fn table(recipe: &Recipe, entries: &[Entry<'_>]) -> Table {
    let mut rows = Vec::new();
    for one in &recipe.dataset {
        let own = entries.iter().filter(|entry| entry.cell.dataset == one.name);
        rows.extend(own.map(|entry| {
            let method = entry.label.clone();
            Row { dataset: entry.dataset, method, ours: Some(entry), papers: None }
        }));
        rows.extend(recipe.published.iter().filter_map(|published| {
            let papers = Some(published.figures.get(&one.name)?);
            let method = format!("paper: {}", published.label);
            Some(Row { dataset: &one.label, method, ours: None, papers })
        }));
    }
    let mut table = Table::of("notes", "Detection, localisation, correction", &rows)
        .grouped_by(|row| row.dataset.to_owned())
        .text("method", |row| &row.method)
        .replies(|row| row.ours?.cell.parse_health);
    for column in NoteColumn::ALL {
        let label = column.label();
        table = match column {
            NoteColumn::Detection | NoteColumn::Localisation => {
                table.under("").spread(label, |row| first(recipe, row, column))
            }
            _ => table
                .under(label)
                .spread("pairs", |row| first(recipe, row, column))
                .spread("all notes", |row| {
                    Some(&correction(recipe, row.ours?.cell, column)?.composite)
                }),
        };
    }
    let has = |column: NoteColumn| {
        let mut entries = entries.iter();
        entries.any(|entry| correction(recipe, entry.cell, column).is_some())
    };
    let is_weighed = has(NoteColumn::BertScore) && has(NoteColumn::Bleurt);
    let failed = entries.iter().filter(|entry| entry.cell.n_errors > 0).map(|entry| {
        let Entry { label, dataset, cell, .. } = entry;
        format!("{label} on {dataset}: {} failed, and count as wrong.", cell.n_errors)
    });
    table
        .note("Pairs: the mean over notes that both the gold and the system correct. All notes: 1 where neither corrects, 0 where only one does. MedGuards' paper says that it uses the latter; its figures look like the former, and are listed there. ROUGE-1 is F1, as its published code has it; its A.1 says recall. BERTScore takes that code's models: deberta-xlarge-mnli, in English rescaled and in Arabic not, and bert-base-chinese. KPCS is 0 where no keyword is found. Their other readings stand in the table of corrections.")
        .notes((!is_weighed).then(|| NO_WEIGHTS.to_owned()))
        .notes(failed)
        .build()
}
