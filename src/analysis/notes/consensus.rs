//! How often two agents agreed, and how often whoever settled it was right (MedGuards, Table 13, Figures 2 and 4 to 6).

use serde::{Deserialize, Serialize};

use super::reading::{NotesReading, verdict};
use crate::record::{NoteLine, Source};

/// One stage. Counts are sums over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consensus {
    /// `detection` or `localisation`.
    pub stage: String,
    /// Notes that the stage saw.
    pub n: usize,
    /// In the order of [`Source`].
    pub settled: Vec<Settled>,
}

/// What one way of settling came to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub source: Source,
    pub n: usize,
    pub n_right: usize,
    /// Of the notes that the stage saw.
    pub share: f64,
    /// Of these.
    pub accuracy: f64,
}

impl Settled {
    pub fn n_wrong(&self) -> usize {
        self.n - self.n_right
    }
}

/// Both stages; one that nobody reached is left out.
pub fn consensus(reading: &NotesReading<'_>) -> Vec<Consensus> {
    let detection = |record: &NoteLine| {
        let source = record.detection.as_ref()?.source;
        Some((source, verdict(record).is_detected))
    };
    // Of a note without an error, no sentence is right; the stage sees it where detection was wrong.
    let localisation = |record: &NoteLine| {
        let source = record.localisation.as_ref()?.source;
        Some((source, verdict(record).is_located))
    };
    let stages = [
        of_stage(reading, "detection", &detection),
        of_stage(reading, "localisation", &localisation),
    ];
    stages.into_iter().flatten().collect()
}

fn of_stage(
    reading: &NotesReading<'_>,
    stage: &str,
    outcome: &dyn Fn(&NoteLine) -> Option<(Source, bool)>,
) -> Option<Consensus> {
    let records = reading.runs.iter().flatten();
    let outcomes: Vec<(Source, bool)> = records.filter_map(|record| outcome(record)).collect();
    let mut sources: Vec<Source> = outcomes.iter().map(|(source, _)| *source).collect();
    sources.sort_unstable();
    sources.dedup();
    let settled = |source: Source| {
        let these = outcomes.iter().filter(|(other, _)| *other == source);
        let n = these.clone().count();
        let n_right = these.filter(|(_, is_right)| *is_right).count();
        Settled {
            source,
            n,
            n_right,
            share: n as f64 / outcomes.len() as f64,
            accuracy: n_right as f64 / n as f64,
        }
    };
    (!outcomes.is_empty()).then(|| Consensus {
        stage: stage.to_owned(),
        n: outcomes.len(),
        settled: sources.into_iter().map(settled).collect(),
    })
}
