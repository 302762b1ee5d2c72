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
}

/// Those columns whose weights are there; none without graded notes. ROUGE-1 is that of the published code.
pub fn columns(outcomes: &Outcomes<'_>, scorer: &CorrectionScorer) -> Vec<ColumnValues> {
    if outcomes.items().is_empty() {
        return Vec::new();
    }
    let corrections = Corrections::of(outcomes, scorer);
    let share = |is_right: fn(&Verdict) -> bool| {
        let notes = outcomes.notes().into_iter();
        let runs = notes.map(|run| {
            let notes = run.into_iter().map(verdict);
            let notes = notes.map(|one| f64::from(u8::from(is_right(&one))));
            notes.collect()
        });
        Some(runs.collect())
    };
    let values = |name: NoteColumn| match name {
        NoteColumn::Detection => share(|one| one.is_detected),
        NoteColumn::Localisation => share(|one| one.is_located),
        NoteColumn::Rouge1 => corrections.parts(Measure::rouge1(outcomes.is_medec()), ALPHA),
        NoteColumn::BertScore => corrections.parts(Measure::BertScore, ALPHA),
        NoteColumn::Bleurt => corrections.parts(Measure::Bleurt, ALPHA),
        NoteColumn::Kpcs => corrections.parts(Measure::Kpcs, ALPHA),
    };
    let columns = NoteColumn::ALL.into_iter();
    columns
        .filter_map(|name| {
            let values = values(name)?;
            Some(ColumnValues { name, values })
        })
        .collect()
}
