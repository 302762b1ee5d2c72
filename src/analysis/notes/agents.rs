//! What two agents make of a note together: how often they agreed, and how often the outcome was right, by how it was settled (MedGuards,
//! Table 13, Figures 2 and 4 to 6); how confident the two detectors are, and whether that predicts being right (Appendix A.13, Table 16).

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::{NoteFigures, Rows, table};
use super::verdict::verdict;
use crate::analysis::metrics::over_runs::{mean, share};
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::Table;
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
    let notes = outcomes.notes();
    let of_stage = |stage, settled: fn(&NoteLine) -> Option<(SettledBy, bool)>| {
        let mut by: BTreeMap<SettledBy, [usize; 2]> = BTreeMap::new();
        for (source, is_right) in notes.iter().filter_map(|note| settled(note)) {
            by.entry(source).or_default()[usize::from(is_right)] += 1;
        }
        let n: usize = by.values().flatten().sum();
        let settled = by.into_iter().map(|(source, [wrong, n_right])| Settled {
            source,
            n: wrong + n_right,
            n_right,
            share: (wrong + n_right) as f64 / n as f64,
            accuracy: n_right as f64 / (wrong + n_right) as f64,
        });
        (n > 0).then(|| Consensus { stage, n, settled: settled.collect() })
    };
    let stages = [
        of_stage(NoteStage::Detection, |note| {
            Some((note.detection.as_ref()?.source, verdict(note).is_detected))
        }),
        // A note without an error is right where the stage says that no sentence is wrong; the stage sees it where detection was wrong.
        of_stage(NoteStage::Localisation, |note| {
            Some((note.localisation.as_ref()?.source, verdict(note).is_located))
        }),
    ];
    stages.into_iter().flatten().collect()
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
        // In runs of earlier versions a third may have been asked all the same.
        let agreed = match detection.flags[..] {
            [Some(first), Some(second), ..] => first == second,
            _ => false,
        };
        Some(([first, second], agreed, verdict(note).is_detected))
    };
    let notes = outcomes.notes();
    let pairs: Vec<([f64; 2], bool, bool)> = notes.iter().filter_map(|note| both(note)).collect();
    let agreed = || pairs.iter().filter(|(_, agreed, _)| *agreed);
    let means = |takes: fn(bool) -> bool| {
        let taken = agreed().filter(|(_, _, is_right)| takes(*is_right));
        let (first, second): (Vec<f64>, Vec<f64>) =
            taken.map(|([first, second], ..)| (*first, *second)).unzip();
        Some([mean(&first)?, mean(&second)?])
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
        n_agreed: agreed().count(),
        all: means(|_| true),
        right: means(|is_right| is_right),
        wrong: means(|is_right| !is_right),
        low: BOUNDS.map(low).to_vec(),
    })
}

pub(super) fn consensus_table(entries: Rows<'_>) -> Option<Table> {
    let rows = entries.iter().flat_map(|entry| {
        entry.of.consensus.iter().flat_map(move |stage| {
            let heading = match entry.group.as_str() {
                "" => stage.stage.name().to_owned(),
                group => format!("{group}, {}", stage.stage.name()),
            };
            stage.settled.iter().map(move |one| (heading.clone(), one))
        })
    });
    Table::grouped("consensus", "Agreement and arbitration (MedGuards, Table 13)", rows)
        .text("settled by", |one| one.source.in_words())
        .number("notes × runs", |one| one.n)
        .number("share", |one| one.share)
        .number("right", |one| one.n_right)
        .number("wrong", |one| one.n - one.n_right)
        .number("share right", |one| one.accuracy)
        .note("Shares are of the notes that the stage saw. In localisation a note without an error is right where the stage says that no sentence is wrong; the stage sees it where detection was wrong.")
        .unless_empty()
}

pub(super) fn confidence_table(entries: Rows<'_>) -> Option<Table> {
    let rows = |notes: &NoteFigures| {
        let found = notes.confidence.as_ref()?;
        let n = Some(found.n_agreed);
        Some([("all", n, found.all), ("right", None, found.right), ("wrong", None, found.wrong)])
    };
    table("confidence", "Mean confidence of the detectors (MedGuards, Table 16)", entries, rows)
        .text("labels", |row| row.0)
        .number("notes × runs", |row| row.1)
        .number("first agent", |row| row.2.map(|means| means[0]))
        .number("second agent", |row| row.2.map(|means| means[1]))
        .note("Over the notes × runs on which both agreed.")
        .unless_empty()
}

pub(super) fn low_confidence_table(entries: Rows<'_>) -> Option<Table> {
    let title = "When both detectors have low confidence (MedGuards, Table 16)";
    table("low-confidence", title, entries, |notes| Some(&notes.confidence.as_ref()?.low))
        .text("both below", |row| format!("{:.2}", row.below))
        .number("notes × runs", |row| row.n)
        .number("agreed", |row| row.n_agreed)
        .number("share agreed", |row| share(row.n_agreed, row.n))
        .number("right", |row| row.n_right)
        .number("share right", |row| share(row.n_right, row.n))
        .note("Right: the final label, however it was settled.")
        .unless_empty()
}
