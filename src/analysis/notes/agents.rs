//! What two agents make of a note together: how often they agreed, and how often the outcome was right, by how it was settled (MedGuards,
//! Table 13, Figures 2 and 4 to 6); how confident the two detectors are, and whether that predicts being right (Appendix A.13, Table 16).

use itertools::Itertools;
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
    let sources = seen.iter().map(|(source, _)| *source).sorted_unstable().dedup();
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
        settled: sources.map(settled).collect(),
    })
}

/// Table 16's bounds of a low confidence.
const BOUNDS: [f64; 3] = [0.90, 0.85, 0.80];

/// Over the notes of all runs on which both said how sure they are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Confidence {
    /// Notes on which the two agreed.
    pub n_agreed: usize,
    /// Mean confidence of the first and the second agent on these, on those of them that are right, and on the others;
    /// `null` where there is none.
    pub all: Option<[f64; 2]>,
    pub right: Option<[f64; 2]>,
    pub wrong: Option<[f64; 2]>,
    pub low: Vec<LowPair>,
}

/// Notes on which both are less sure than `below`.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LowPair {
    pub below: f64,
    pub n: usize,
    /// Of these, on how many they agree.
    pub n_agreed: usize,
    /// Of these, how many flags came out right, however they were settled.
    pub n_right: usize,
}

/// `None` where no two agents said how sure they are.
pub fn confidence(outcomes: &Outcomes<'_>) -> Option<Confidence> {
    let both = |note: &NoteLine| {
        let detection = note.detection.as_ref()?;
        let [Some(first), Some(second), ..] = detection.confidences[..] else { return None };
        // Under `arbitration=confidence` a third may have been asked all the same.
        let agreed = match detection.flags[..] {
            [Some(first), Some(second), ..] => first == second,
            _ => false,
        };
        Some(([first, second], agreed, verdict(note).is_detected))
    };
    let notes = outcomes.notes().into_iter().flatten();
    let pairs: Vec<([f64; 2], bool, bool)> = notes.filter_map(both).collect();
    let mean = |takes: fn(bool) -> bool| {
        let agreed = pairs.iter().filter(|(_, agreed, _)| *agreed);
        let taken = agreed.filter(|(_, _, is_right)| takes(*is_right));
        let taken: Vec<[f64; 2]> = taken.map(|(pair, _, _)| *pair).collect();
        let of =
            |agent: usize| taken.iter().map(|pair| pair[agent]).sum::<f64>() / taken.len() as f64;
        (!taken.is_empty()).then(|| [of(0), of(1)])
    };
    let low = |below: f64| {
        let these = pairs.iter().filter(move |(pair, _, _)| pair.iter().all(|one| *one < below));
        LowPair {
            below,
            n: these.clone().count(),
            n_agreed: these.clone().filter(|(_, agreed, _)| *agreed).count(),
            n_right: these.filter(|(_, _, is_right)| *is_right).count(),
        }
    };
    (!pairs.is_empty()).then(|| Confidence {
        n_agreed: pairs.iter().filter(|(_, agreed, _)| *agreed).count(),
        all: mean(|_| true),
        right: mean(|is_right| is_right),
        wrong: mean(|is_right| !is_right),
        low: BOUNDS.map(low).to_vec(),
    })
}
