//! The columns of MedGuards' tables, note by note: what a cell is compared by.

use super::correction::{parts, quality};
use super::quality::{Gauge, Quality, rouge1};
use super::reading::{NotesReading, keywords};
use crate::analysis::metrics::kpcs::{ALPHA, kpcs};
use crate::record::NoteLine;

/// The columns in the order of Table 2: what recipes call them, and what people do.
pub const COLUMNS: [(&str, &str); 6] = [
    ("detection", "detection"),
    ("localisation", "localisation"),
    ("rouge1", "ROUGE-1"),
    ("bertscore", "BERTScore"),
    ("bleurt", "BLEURT"),
    ("kpcs", "KPCS"),
];

/// One column of one cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    pub name: &'static str,
    /// `[runs][notes]`, from 0 to 1. Of a correction: its score, 1 where neither side corrects, 0 where one does.
    pub values: Vec<Vec<f64>>,
}

impl Column {
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

/// Those of [`COLUMNS`] whose weights are at hand; none without graded notes. ROUGE-1 is that of the published code: with stems for MEDEC.
pub fn columns(reading: &NotesReading<'_>, gauge: &Gauge) -> Vec<Column> {
    if reading.notes.is_empty() {
        return Vec::new();
    }
    let verdicts = reading.verdicts();
    let share = |name, is_right: fn(&super::Verdict) -> bool| {
        let run = |run: &Vec<super::Verdict>| {
            let notes = run.iter().map(|one| f64::from(u8::from(is_right(one))));
            notes.collect()
        };
        Column {
            name,
            values: verdicts.iter().map(run).collect(),
        }
    };
    let qualities = reading.map(|record| quality(record, &gauge.learned));
    let is_medec = reading.is_medec();
    let of_correction =
        |name, score: &dyn Fn(&NoteLine, &Quality) -> Option<f64>| -> Option<Column> {
            let values = parts(reading, &qualities, score)?;
            Some(Column { name, values })
        };
    // Without its weights a measure has no column, even where no note is a pair.
    let has = |measure: &'static str| {
        let mut scores = gauge.learned.values();
        scores.any(|one| match measure {
            "bertscore" => one.bertscore.is_some(),
            _ => one.bleurt.is_some(),
        })
    };
    let bertscore =
        has("bertscore").then(|| of_correction("bertscore", &|_, quality| quality.bertscore));
    let bleurt = has("bleurt").then(|| of_correction("bleurt", &|_, quality| quality.bleurt));
    let kpcs = (has("bertscore") && has("bleurt")).then(|| {
        of_correction("kpcs", &|record, quality| {
            let correction = record.correction.as_deref()?;
            let similarity = quality.aggregate(is_medec)?;
            Some(kpcs(&keywords(record, gauge), correction, similarity, ALPHA).unwrap_or(0.0))
        })
    });
    let corrections = [
        of_correction("rouge1", &|_, quality| quality.get(rouge1(is_medec))),
        bertscore.flatten(),
        bleurt.flatten(),
        kpcs.flatten(),
    ];
    let shares = [
        share("detection", |one| one.is_detected),
        share("localisation", |one| one.is_located),
    ];
    shares
        .into_iter()
        .chain(corrections.into_iter().flatten())
        .collect()
}
