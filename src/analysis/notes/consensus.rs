//! How often two agents agreed, and how often the outcome was right, by how it was settled (MedGuards, Table 13, Figures 2 and 4 to 6).

use serde::{Deserialize, Serialize};

use super::verdict::verdict;
use crate::analysis::outcomes::Outcomes;
use crate::record::{NoteLine, NoteStage, SettledBy};

/// One stage. Counts are sums over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Consensus {
    pub stage: NoteStage,
    /// Notes that the stage saw.
    pub n: usize,
    /// In the order of [`SettledBy`].
    pub settled: Vec<Settled>,
}

/// The outcomes of one way of settling.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Settled {
    pub source: SettledBy,
    pub n: usize,
    pub n_right: usize,
    /// Of the notes that the stage saw.
    pub share: f64,
    /// Of these.
    pub accuracy: f64,
}

/// Both stages; one that nobody reached is left out.
pub fn consensus(outcomes: &Outcomes<'_>) -> Vec<Consensus> {
    let detection = |note: &NoteLine| {
        let source = note.detection.as_ref()?.source;
        Some((source, verdict(note).is_detected))
    };
    // A note without an error is right where the stage says that no sentence is wrong; the stage sees it where detection was wrong.
    let localisation = |note: &NoteLine| {
        let source = note.localisation.as_ref()?.source;
        Some((source, verdict(note).is_located))
    };
    let stages = [
        of_stage(outcomes, NoteStage::Detection, &detection),
        of_stage(outcomes, NoteStage::Localisation, &localisation),
    ];
    stages.into_iter().flatten().collect()
}

fn of_stage(
    outcomes: &Outcomes<'_>,
    stage: NoteStage,
    settled: &dyn Fn(&NoteLine) -> Option<(SettledBy, bool)>,
) -> Option<Consensus> {
    let notes = outcomes.notes().into_iter().flatten();
    let seen: Vec<(SettledBy, bool)> = notes.filter_map(settled).collect();
    let mut sources: Vec<SettledBy> = seen.iter().map(|(source, _)| *source).collect();
    sources.sort_unstable();
    sources.dedup();
    let settled = |source: SettledBy| {
        let these = seen.iter().filter(|(other, _)| *other == source);
        let n = these.clone().count();
        let n_right = these.filter(|(_, is_right)| *is_right).count();
        Settled {
            source,
            n,
            n_right,
            share: n as f64 / seen.len() as f64,
            accuracy: n_right as f64 / n as f64,
        }
    };
    (!seen.is_empty()).then(|| Consensus {
        stage,
        n: seen.len(),
        settled: sources.into_iter().map(settled).collect(),
    })
}
