//! The paper's columns: ours, then its own rows.

use super::notes::Entry;
use crate::analysis::metrics::kpcs::ALPHA;
use crate::analysis::notes::{Kpcs, Measure, Measured};
use crate::analysis::table::{Cell, Table};
use crate::experiment::recipe::file::DatasetEntry;
use crate::experiment::recipe::paper::PublishedEntry;
use crate::experiment::recipe::{NoteColumn, Recipe};

/// What is said where weights of metrics are missing.
const NO_WEIGHTS: &str = "BERTScore, BLEURT and what is made of them (AggregateScore, KPCS) were not computed where a dash stands: give the folder of their weights with --scorers DIR.";

/// A row: a cell of ours, or what the paper has for a dataset.
#[derive(Clone, Copy)]
enum Line<'a> {
    Ours(&'a Entry<'a>),
    Papers(&'a DatasetEntry, &'a PublishedEntry),
}

impl<'a> Line<'a> {
    fn ours(self) -> Option<&'a Entry<'a>> {
        match self {
            Line::Ours(entry) => Some(entry),
            Line::Papers(..) => None,
        }
    }
}

fn is_medec(recipe: &Recipe, entry: &Entry<'_>) -> bool {
    let mut datasets = recipe.dataset.iter();
    datasets.any(|one| one.name == entry.cell.dataset && one.format.is_medec())
}

fn kpcs<'a>(entry: &Entry<'a>) -> Option<&'a Kpcs> {
    entry.notes.correction.as_ref()?.kpcs.iter().find(|one| one.alpha == ALPHA)
}

/// A variant of a column's measure that is shown next to it: its label and figure.
type Variant = (&'static str, for<'a> fn(&Recipe, &Entry<'a>) -> Option<&'a Measured>);

fn variants(column: NoteColumn) -> &'static [Variant] {
    match column {
        NoteColumn::Detection
        | NoteColumn::Localisation
        | NoteColumn::Bleurt
        | NoteColumn::Aggregate => &[],
        NoteColumn::Rouge1 => &[("recall, pairs", |recipe, entry| {
            let recall = Measure::rouge1_recall(is_medec(recipe, entry));
            entry.notes.correction.as_ref()?.measure(recall)
        })],
        NoteColumn::BertScore => &[("multilingual BERT, pairs", |_, entry| {
            entry.notes.correction.as_ref()?.measure(Measure::BertScoreMultilingual)
        })],
        NoteColumn::Kpcs => &[
            ("without the zero, pairs", |_, entry| kpcs(entry).map(|one| &one.ungated)),
            ("gated, pairs", |_, entry| kpcs(entry).map(|one| &one.gated)),
        ],
    }
}

/// What a cell has of a column of corrections; ROUGE-1 is the one that the paper has for the dataset.
pub(super) fn correction<'a>(
    recipe: &Recipe,
    entry: &Entry<'a>,
    column: NoteColumn,
) -> Option<&'a Measured> {
    let correction = entry.notes.correction.as_ref()?;
    match column {
        NoteColumn::Detection | NoteColumn::Localisation => None,
        NoteColumn::Kpcs => kpcs(entry).map(|one| &one.eq9),
        NoteColumn::Rouge1 => correction.measure(Measure::rouge1(is_medec(recipe, entry))),
        NoteColumn::BertScore => correction.measure(Measure::BertScore),
        NoteColumn::Bleurt => correction.measure(Measure::Bleurt),
        NoteColumn::Aggregate => correction.measure(Measure::Aggregate),
    }
}

/// A share of all notes, or the mean of a measure over the pairs.
fn first(recipe: &Recipe, line: Line<'_>, column: NoteColumn) -> Cell {
    let entry = match line {
        Line::Ours(entry) => entry,
        Line::Papers(dataset, published) => {
            let figures = published.figures.get(&dataset.name);
            return figures.and_then(|figures| figures.get(&column).copied()).into();
        }
    };
    match column {
        NoteColumn::Detection => entry.notes.detection.as_ref().map(|one| &one.accuracy).into(),
        NoteColumn::Localisation => {
            entry.notes.localisation.as_ref().map(|one| &one.accuracy).into()
        }
        _ => correction(recipe, entry, column).and_then(|one| one.subset.as_ref()).into(),
    }
}

pub fn table(recipe: &Recipe, entries: &[Entry<'_>]) -> Table {
    let lines = recipe.dataset.iter().flat_map(|dataset| {
        let ours = entries.iter().filter(|entry| entry.cell.dataset == dataset.name);
        let papers = recipe.published.iter();
        let papers = papers.filter(|one| one.figures.contains_key(&dataset.name));
        let papers = papers.map(move |published| Line::Papers(dataset, published));
        ours.map(Line::Ours).chain(papers)
    });
    let mut table = Table::of("notes", "Detection, localisation, correction", lines)
        .grouped_by(|line| match line {
            Line::Ours(entry) => entry.dataset.to_owned(),
            Line::Papers(dataset, _) => dataset.label.clone(),
        })
        .text("method", |line| match line {
            Line::Ours(entry) => entry.label.clone(),
            Line::Papers(_, published) => format!("paper: {}", published.label),
        });
    table = table.replies(|line| line.ours()?.cell.parse_health);
    for column in NoteColumn::ALL {
        let label = column.label();
        table = match column {
            NoteColumn::Detection | NoteColumn::Localisation => {
                table.under("").spread(label, |line| first(recipe, line, column))
            }
            _ => table
                .under(label)
                .spread("pairs", |line| first(recipe, line, column))
                .spread("all notes", |line| {
                    Some(&correction(recipe, line.ours()?, column)?.composite)
                }),
        };
        let has = |of: &Variant| entries.iter().any(|entry| of.1(recipe, entry).is_some());
        for (label, of) in variants(column).iter().filter(|of| has(of)) {
            table = table.spread(*label, |line| of(recipe, line.ours()?)?.subset.as_ref());
        }
    }
    let has = |column: NoteColumn| {
        let mut entries = entries.iter();
        entries.any(|entry| correction(recipe, entry, column).is_some())
    };
    let is_weighed = has(NoteColumn::BertScore) && has(NoteColumn::Bleurt);
    let failed = entries.iter().filter(|entry| entry.cell.n_errors > 0).map(|entry| {
        let Entry { label, dataset, cell, .. } = entry;
        format!("{label} on {dataset}: {} failed, and count as wrong.", cell.n_errors)
    });
    table
        .note("Pairs: the mean over notes that both the gold and the system correct. All notes: 1 where neither corrects, 0 where only one does. MedGuards' paper says that it uses the latter; its figures look like the former, and are listed there. ROUGE-1 is F1, as its published code has it; its A.1 says recall. BERTScore takes that code's models: deberta-xlarge-mnli, in English rescaled and in Arabic not, and bert-base-chinese; bert-score's own for Arabic, multilingual BERT, stands beside. KPCS is 0 where no keyword is found; without the zero it is Eq. 9 as printed; gated, it is the published code's.")
        .notes((!is_weighed).then(|| NO_WEIGHTS.to_owned()))
        .notes(failed)
        .build()
}
