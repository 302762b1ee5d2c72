//! The columns of MedGuards' tables, note by note: what a cell is compared by.

use super::correction::Corrections;
use super::quality::{CorrectionScorer, Measure};
use super::verdict::{Verdict, verdict};
use crate::analysis::metrics::kpcs::ALPHA;
use crate::analysis::metrics::over_runs::mean;
use crate::analysis::outcomes::Outcomes;
use crate::experiment::recipe::NoteColumn;

/// One column of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct ColumnValues {
    pub name: NoteColumn,
    /// `[runs][notes]`, from 0 to 1. Of a correction: its score, 1 where neither side corrects, 0 where one does.
    pub values: Vec<Vec<f64>>,
    /// Of a correction, the mean over the pairs, averaged over the runs, `None` where a run has no pair; else the mean of `values`.
    pub over_pairs: Option<f64>,
}

impl ColumnValues {
    /// Each note's mean over the runs.
    pub fn by_note(&self) -> Vec<f64> {
        let notes = self.values.first().map_or(0, Vec::len);
        let of_note = |note: usize| self.values.iter().map(|run| run[note]).collect::<Vec<_>>();
        (0..notes).filter_map(|note| mean(&of_note(note))).collect()
    }

    /// The mean of `values`: of a correction, the composite.
    pub fn composite(&self) -> f64 {
        mean(&self.by_note()).unwrap_or_default()
    }
}

/// Those columns whose weights are there; none without graded notes. ROUGE-1 is that of the published code.
pub fn columns(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> Vec<ColumnValues> {
    if outcomes.items().is_empty() {
        return Vec::new();
    }
    let corrections = Corrections::of(outcomes, scorer);
    let of_notes = |name, is_right: fn(&Verdict) -> bool| {
        let value = |note| f64::from(u8::from(is_right(&verdict(note))));
        let runs = outcomes.notes().into_iter();
        let values = runs.map(|run| run.into_iter().map(value).collect()).collect();
        let column = ColumnValues { name, values, over_pairs: None };
        Some(ColumnValues { over_pairs: Some(column.composite()), ..column })
    };
    let of_corrections = |name, measure| {
        let over_pairs = corrections.measured(measure, ALPHA)?.subset;
        Some(ColumnValues {
            name,
            values: corrections.parts(measure, ALPHA)?,
            over_pairs: over_pairs.map(|one| one.mean),
        })
    };
    let column = |name: NoteColumn| match name {
        NoteColumn::Detection => of_notes(name, |one| one.is_detected),
        NoteColumn::Localisation => of_notes(name, |one| one.is_located),
        NoteColumn::Rouge1 => of_corrections(name, Measure::rouge1(outcomes.is_medec())),
        NoteColumn::BertScore => of_corrections(name, Measure::BertScore),
        NoteColumn::Bleurt => of_corrections(name, Measure::Bleurt),
        NoteColumn::Aggregate => of_corrections(name, Measure::Aggregate),
        NoteColumn::Kpcs => of_corrections(name, Measure::Kpcs),
    };
    NoteColumn::ALL.into_iter().filter_map(column).collect()
}
