//! Whether errors were found, and where (MedGuards, §4; the published code's classification report).

use itertools::Itertools;
use serde::{Deserialize, Serialize};

use super::figures::{NoteFigures, Rows, table};
use super::verdict::{Verdict, verdict};
use crate::analysis::facts::Facts;
use crate::analysis::metrics::over_runs::{OverRuns, share};
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::{Table, TableBuilder};
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

/// A graded note and what is right of it.
type Judged<'a> = (&'a NoteLine, Verdict);

impl Detection {
    /// `None` without graded notes.
    pub fn of(outcomes: &Outcomes<'_>) -> Option<Detection> {
        let notes = outcomes.notes();
        let judged = notes.map(|note| (*note, verdict(note)));
        let over =
            |of: fn(&Confusion) -> Option<f64>| notes.over_runs(|run| of(&Confusion::of(run)));
        Some(Detection {
            accuracy: outcomes.accuracy()?,
            accuracy_of_read: judged.only(|one| one.1.is_read).share(|one| one.1.is_detected),
            confusion: Confusion::of(&notes.0.concat()),
            precision: over(Confusion::precision),
            recall: over(Confusion::recall),
            f1: over(Confusion::f1),
            by_type: by_type(&judged),
        })
    }
}

impl Localisation {
    /// `None` without graded notes.
    pub fn of(outcomes: &Outcomes<'_>) -> Option<Localisation> {
        let judged = outcomes.notes().map(|note| (*note, verdict(note)));
        let errors = judged.only(|(note, _)| note.gold.as_ref().is_some_and(|gold| gold.flag));
        Some(Localisation {
            accuracy: judged.share(|one| one.1.is_located)?,
            accuracy_exact: judged.share(|one| one.1.is_located_exactly)?,
            of_errors: errors.share(|one| one.1.is_located),
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

/// The type of a note's error.
fn kind(note: &NoteLine) -> Option<&str> {
    note.gold.as_ref()?.kind.as_deref()
}

fn by_type(judged: &Facts<Judged<'_>>) -> Vec<ByType> {
    let kinds = judged.iter().filter_map(|(note, _)| kind(note)).sorted_unstable().dedup();
    let row = |name: &str| {
        let own = judged.only(|(note, _)| kind(note) == Some(name));
        Some(ByType {
            kind: name.to_owned(),
            n: own.0.first()?.len(),
            detected: own.share(|one| one.1.is_detected)?,
            located: own.share(|one| one.1.is_located)?,
        })
    };
    kinds.filter_map(row).collect()
}

/// What a share is of, the share, and of how many notes over all runs.
type Share<'a> = (&'static str, Option<&'a OverRuns>, usize);

fn shares<'a>(
    name: &'static str,
    title: &str,
    entries: Rows<'a>,
    rows: impl Fn(&'a NoteFigures) -> Option<Vec<Share<'a>>>,
) -> TableBuilder<Share<'a>> {
    table(name, title, entries, rows)
        .text("", |row| row.0)
        .spread("share", |row| row.1)
        .number("of notes × runs", |row| row.2)
}

pub(super) fn detection_table<'a>(entries: Rows<'a>) -> Option<Table> {
    let rows = |notes: &'a NoteFigures| {
        let Detection { confusion, accuracy, accuracy_of_read, precision, recall, f1, .. } =
            notes.detection.as_ref()?;
        let errors = confusion.errors();
        let all = errors + confusion.sound();
        let read = all - confusion.unread();
        Some(vec![
            ("accuracy, unreadable labels count as wrong", Some(accuracy), all),
            (
                "accuracy of readable labels, as the published code counts",
                accuracy_of_read.as_ref(),
                read,
            ),
            ("precision", precision.as_ref(), confusion.flagged()),
            ("recall", recall.as_ref(), errors),
            ("F1", f1.as_ref(), all),
        ])
    };
    shares("detection", "Detection: does the note have an error?", entries, rows)
        .note("Mean ± sample standard deviation over n runs. Precision is over the notes that were flagged, recall over those with an error; an error whose label could not be read counts as missed.")
        .unless_empty()
}

pub(super) fn confusion_table(entries: Rows<'_>) -> Option<Table> {
    let rows = |notes: &NoteFigures| {
        let one = &notes.detection.as_ref()?.confusion;
        let errors = [one.true_positives, one.false_negatives, one.unread_positives];
        let sound = [one.false_positives, one.true_negatives, one.unread_negatives];
        Some([("error", errors), ("no error", sound)])
    };
    table("confusion", "Confusion matrix of detection", entries, rows)
        .text("gold", |row| row.0)
        .number("error", |row| row.1[0])
        .number("no error", |row| row.1[1])
        .number("unreadable or errored", |row| row.1[2])
        .note("Sums over the runs.")
        .unless_empty()
}

pub(super) fn localisation_table<'a>(entries: Rows<'a>) -> Option<Table> {
    let rows = |notes: &'a NoteFigures| {
        let (localisation, detection) = (notes.localisation.as_ref()?, notes.detection.as_ref()?);
        let errors = detection.confusion.errors();
        let all = errors + detection.confusion.sound();
        Some(vec![
            ("soft: the sentence most like the quoted words", Some(&localisation.accuracy), all),
            ("exact: quoted word for word", Some(&localisation.accuracy_exact), all),
            ("soft, notes with an error only", localisation.of_errors.as_ref(), errors),
        ])
    };
    shares("localisation", "Localisation: which sentence?", entries, rows)
        .note("A note without an error is right where the system says that no sentence is wrong; a place that could not be read is wrong, for which a submission has −1.")
        .unless_empty()
}

pub(super) fn types_table(entries: Rows<'_>) -> Option<Table> {
    table("types", "By error type", entries, |notes| Some(&notes.detection.as_ref()?.by_type))
        .text("type", |row| &row.kind)
        .number("notes", |row| row.n)
        .spread("detected", |row| &row.detected)
        .spread("located", |row| &row.located)
        .note("Shares of the notes of the type; located by similarity.")
        .unless_empty()
}
