//! How confident the two detectors are, and whether confidence predicts being right (MedGuards, Appendix A.13, Table 16).

use serde::{Deserialize, Serialize};

use super::verdict::verdict;
use crate::analysis::outcomes::Outcomes;
use crate::record::NoteLine;

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
