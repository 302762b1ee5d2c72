//! Whether errors were found, and where (MedGuards, §4; the published code's classification report).

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::verdict::{Verdict, verdict};
use crate::analysis::metrics::over_runs::{OverRuns, share};
use crate::analysis::outcomes::Outcomes;
use crate::record::NoteLine;

/// Flags compared with the gold ones. Counts are sums over the runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Detection {
    /// What could not be read counts as wrong.
    pub accuracy: OverRuns,
    /// The same without it, as the published code counts; `null` where a run has nothing else.
    pub accuracy_of_read: Option<OverRuns>,
    pub confusion: Confusion,
    /// Of the notes that were flagged; `null` where a run flags none.
    pub precision: Option<OverRuns>,
    /// Of the notes with an error; `null` where a run has none.
    pub recall: Option<OverRuns>,
    /// Harmonic mean of precision and recall; `null` where either is.
    pub f1: Option<OverRuns>,
    /// In the order of their names.
    pub by_type: Vec<ByType>,
}

/// An error that is flagged is a true positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Confusion {
    pub true_positives: usize,
    pub false_positives: usize,
    pub true_negatives: usize,
    pub false_negatives: usize,
    /// Of notes with an error, those whose flag could not be read, or that errored.
    pub unread_positives: usize,
    pub unread_negatives: usize,
}

/// Errors of one type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByType {
    #[serde(rename = "type")]
    pub kind: String,
    /// Notes, in one run.
    pub n: usize,
    pub detected: OverRuns,
    pub located: OverRuns,
}

/// Sentences compared with the gold ones. A note without an error is right where the system says so; what could not be read is wrong.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Localisation {
    /// Sentences by likeness.
    pub accuracy: OverRuns,
    /// Sentences that the system's words equal.
    pub accuracy_exact: OverRuns,
    /// Of the notes with an error alone; `null` where there is none.
    pub of_errors: Option<OverRuns>,
}

impl Detection {
    /// `None` without graded notes.
    pub fn of(outcomes: &Outcomes<'_>) -> Option<Detection> {
        let notes = outcomes.notes();
        let verdicts = verdicts(&notes);
        let confusions: Vec<Confusion> = notes.iter().map(|run| Confusion::of(run)).collect();
        let over = |of: fn(&Confusion) -> Option<f64>| {
            OverRuns::of(confusions.iter().map(of).collect::<Option<_>>()?)
        };
        let read = only(&verdicts, |_, one| one.is_read);
        Some(Detection {
            accuracy: outcomes.accuracy()?,
            accuracy_of_read: shares(&read, |one| one.is_detected),
            confusion: Confusion::of(&notes.concat()),
            precision: over(Confusion::precision),
            recall: over(Confusion::recall),
            f1: over(Confusion::f1),
            by_type: by_type(&notes, &verdicts),
        })
    }
}

impl Localisation {
    /// `None` without graded notes.
    pub fn of(outcomes: &Outcomes<'_>) -> Option<Localisation> {
        let notes = outcomes.notes();
        let verdicts = verdicts(&notes);
        let errors = only(&verdicts, |note, _| {
            let gold = notes[0][note].gold.as_ref();
            gold.is_some_and(|gold| gold.flag)
        });
        Some(Localisation {
            accuracy: shares(&verdicts, |one| one.is_located)?,
            accuracy_exact: shares(&verdicts, |one| one.is_located_exactly)?,
            of_errors: shares(&errors, |one| one.is_located),
        })
    }
}

impl Confusion {
    fn of(notes: &[&NoteLine]) -> Confusion {
        let mut confusion = Confusion::default();
        for note in notes {
            let is_wrong = note.gold.as_ref().is_some_and(|gold| gold.flag);
            let flag = note.flag.said().filter(|_| note.error.is_none());
            let count = match (is_wrong, flag) {
                (true, Some(true)) => &mut confusion.true_positives,
                (true, Some(false)) => &mut confusion.false_negatives,
                (true, None) => &mut confusion.unread_positives,
                (false, Some(true)) => &mut confusion.false_positives,
                (false, Some(false)) => &mut confusion.true_negatives,
                (false, None) => &mut confusion.unread_negatives,
            };
            *count += 1;
        }
        confusion
    }

    /// Notes with an error.
    pub fn errors(&self) -> usize {
        self.true_positives + self.false_negatives + self.unread_positives
    }

    /// Notes without.
    pub fn sound(&self) -> usize {
        self.true_negatives + self.false_positives + self.unread_negatives
    }

    /// Notes that were said to have an error.
    pub fn flagged(&self) -> usize {
        self.true_positives + self.false_positives
    }

    /// Notes of which nothing was said that could be read.
    pub fn unread(&self) -> usize {
        self.unread_positives + self.unread_negatives
    }

    fn precision(&self) -> Option<f64> {
        share(self.true_positives, self.flagged())
    }

    /// An error whose flag could not be read was not found.
    fn recall(&self) -> Option<f64> {
        share(self.true_positives, self.errors())
    }

    fn f1(&self) -> Option<f64> {
        let (precision, recall) = (self.precision()?, self.recall()?);
        let sum = precision + recall;
        Some(if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 })
    }
}

fn verdicts(notes: &[Vec<&NoteLine>]) -> Vec<Vec<Verdict>> {
    let runs = notes.iter();
    runs.map(|run| run.iter().map(|note| verdict(note)).collect()).collect()
}

fn by_type(notes: &[Vec<&NoteLine>], verdicts: &[Vec<Verdict>]) -> Vec<ByType> {
    let Some(first) = notes.first() else { return Vec::new() };
    let kind = |note: usize| {
        let gold = first[note].gold.as_ref();
        gold.and_then(|gold| gold.kind.as_deref())
    };
    let kinds = (0..first.len()).filter_map(kind).sorted_unstable().dedup();
    let row = |name: &str| {
        let of_kind = only(verdicts, |note, _| kind(note) == Some(name));
        Some(ByType {
            kind: name.to_owned(),
            n: of_kind.first()?.len(),
            detected: shares(&of_kind, |one| one.is_detected)?,
            located: shares(&of_kind, |one| one.is_located)?,
        })
    };
    kinds.filter_map(row).collect()
}

/// Some of the verdicts, by the place of the note.
fn only(verdicts: &[Vec<Verdict>], takes: impl Fn(usize, &Verdict) -> bool) -> Vec<Vec<Verdict>> {
    let chosen = |run: &Vec<Verdict>| {
        let notes = run.iter().enumerate().filter(|(note, verdict)| takes(*note, verdict));
        notes.map(|(_, verdict)| *verdict).collect()
    };
    verdicts.iter().map(chosen).collect()
}

fn shares(verdicts: &[Vec<Verdict>], is_right: fn(&Verdict) -> bool) -> Option<OverRuns> {
    let runs = verdicts.iter();
    let runs: Vec<Vec<bool>> = runs.map(|run| run.iter().map(is_right).collect()).collect();
    OverRuns::of_shares(&runs)
}
