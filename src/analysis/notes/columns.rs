//! The columns of MedGuards' tables, note by note: what a cell is compared by.

use super::correction::Corrections;
use super::quality::{CorrectionScorer, Measure};
use super::verdict::{Verdict, verdict};
use crate::analysis::metrics::kpcs::ALPHA;
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
        let mean = |note: usize| {
            let sum: f64 = self.values.iter().map(|run| run[note]).sum();
            sum / self.values.len() as f64
        };
        (0..notes).map(mean).collect()
    }

    /// The mean of `values`: of a correction, the composite.
    pub fn composite(&self) -> f64 {
        let values = self.by_note();
        values.iter().sum::<f64>() / values.len() as f64
    }
}

/// Those columns whose weights are there; none without graded notes. ROUGE-1 is that of the published code.
pub fn columns(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> Vec<ColumnValues> {
    if outcomes.items().is_empty() {
        return Vec::new();
    }
    let corrections = Corrections::of(outcomes, scorer);
    let share = |is_right: fn(&Verdict) -> bool| -> Vec<Vec<f64>> {
        let notes = outcomes.notes().into_iter();
        let runs = notes.map(|run| {
            let notes = run.into_iter().map(verdict);
            let notes = notes.map(|one| f64::from(u8::from(is_right(&one))));
            notes.collect()
        });
        runs.collect::<Vec<Vec<f64>>>()
    };
    let of_notes = |name, is_right: fn(&Verdict) -> bool| {
        let column = ColumnValues { name, values: share(is_right), over_pairs: None };
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
