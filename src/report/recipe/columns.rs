//! The paper's columns: ours, then its own rows.

use super::notes::Entry;
use crate::analysis::metrics::kpcs::ALPHA;
use crate::analysis::notes::{Measure, Measured};
use crate::data::Format;
use crate::experiment::recipe::{NoteColumn, Recipe};
use crate::report::table::{Cell, Column, Kind, Row, Table};
use crate::report::tables::correction::measured;

/// What is said where weights of metrics are missing.
const NO_WEIGHTS: &str = "BERTScore, BLEURT and what is made of them (AggregateScore, KPCS) were not computed where a dash stands: give the folder of their weights with --scorers DIR.";

/// What a cell has of a column of corrections; ROUGE-1 is the one that the paper has for the dataset.
fn correction<'a>(recipe: &Recipe, entry: &Entry<'a>, column: NoteColumn) -> Option<&'a Measured> {
    let correction = entry.notes.correction.as_ref()?;
    match column {
        NoteColumn::Detection | NoteColumn::Localisation => None,
        NoteColumn::Kpcs => {
            let half = correction.kpcs.iter().find(|one| one.alpha == ALPHA);
            half.map(|one| &one.eq9)
        }
        NoteColumn::Rouge1 => {
            let mut datasets = recipe.dataset.iter();
            let is_medec =
                datasets.any(|one| one.name == entry.cell.dataset && one.format == Format::Medec);
            correction.measure(Measure::rouge1(is_medec))
        }
        NoteColumn::BertScore => correction.measure(Measure::BertScore),
        NoteColumn::Bleurt => correction.measure(Measure::Bleurt),
    }
}

/// A share of all notes, or a measure over the pairs and over all notes.
fn ours(recipe: &Recipe, entry: &Entry<'_>, column: NoteColumn) -> Vec<Cell> {
    let (detection, localisation) = (&entry.notes.detection, &entry.notes.localisation);
    match column {
        NoteColumn::Detection => {
            vec![Cell::over_runs(detection.as_ref().map(|one| &one.accuracy))]
        }
        NoteColumn::Localisation => {
            vec![Cell::over_runs(localisation.as_ref().map(|one| &one.accuracy))]
        }
        _ => measured(correction(recipe, entry, column)).to_vec(),
    }
}

pub fn table(recipe: &Recipe, entries: &[Entry<'_>]) -> Table {
    let mut columns = vec![Column::new("method", Kind::Text)];
    for column in NoteColumn::ALL {
        let label = column.label();
        match column {
            NoteColumn::Detection | NoteColumn::Localisation => {
                columns.push(Column::new(label, Kind::Spread));
            }
            _ => {
                columns.push(Column::under(label, "pairs", Kind::Spread));
                columns.push(Column::under(label, "all notes", Kind::Spread));
            }
        }
    }
    let row = |entry: &Entry<'_>| {
        let cells = NoteColumn::ALL.into_iter();
        entry.row(cells.flat_map(|column| ours(recipe, entry, column)))
    };
    let mut rows = Vec::new();
    for dataset in &recipe.dataset {
        let of_dataset = entries.iter();
        let of_dataset = of_dataset.filter(|entry| entry.cell.dataset == dataset.name);
        rows.extend(of_dataset.map(row));
        for published in &recipe.published {
            let Some(figures) = published.figures.get(&dataset.name) else {
                continue;
            };
            let mut cells = vec![Cell::text(format!("paper: {}", published.label))];
            for column in NoteColumn::ALL {
                let figure = Cell::share(figures.get(&column).copied());
                match column {
                    NoteColumn::Detection | NoteColumn::Localisation => cells.push(figure),
                    _ => cells.extend([figure, Cell::Nothing]),
                }
            }
            let group = dataset.label.clone();
            rows.push(Row { group, cells });
        }
    }
    let mut notes = vec![
        "Pairs: the mean over notes that both the gold and the system correct. All notes: 1 where neither corrects, 0 where only one does. The paper says that it uses the latter; its figures look like the former, and are listed there.".to_owned(),
    ];
    let has = |column: NoteColumn| {
        let mut entries = entries.iter();
        entries.any(|entry| correction(recipe, entry, column).is_some())
    };
    if !(has(NoteColumn::BertScore) && has(NoteColumn::Bleurt)) {
        notes.push(NO_WEIGHTS.to_owned());
    }
    for entry in entries.iter().filter(|entry| entry.cell.n_errors > 0) {
        notes.push(format!(
            "{} on {}: {} failed, and count as wrong.",
            entry.label, entry.dataset, entry.cell.n_errors
        ));
    }
    Table {
        name: "notes",
        title: "Detection, localisation, correction".to_owned(),
        columns,
        rows,
        notes,
    }
}
