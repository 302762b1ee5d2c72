//! The tables of detection and localisation: shares, what was said by gold, types of error.

use super::table;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{ByType, Detection, Localisation};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// A figure, what it is called, and of how many notes × runs it is.
type Share<'a> = (&'a str, Option<&'a OverRuns>, usize);

fn table_of_shares(name: &'static str, title: &str, shares: &[Share<'_>], note: &str) -> Table {
    let row = |(label, figure, of): &Share<'_>| {
        Row::new(vec![
            Cell::text(*label),
            Cell::over_runs(*figure),
            Cell::Count(*of),
        ])
    };
    table(
        name,
        title,
        vec![
            Column::new("", Kind::Text),
            Column::new("share", Kind::Spread),
            Column::new("of notes × runs", Kind::Number),
        ],
        shares.iter().map(row).collect(),
        &[note],
    )
}

pub fn shares(detection: &Detection) -> Table {
    let confusion = &detection.confusion;
    let errors = confusion.errors();
    let all = errors + confusion.sound();
    table_of_shares(
        "detection",
        "Detection: has the note an error?",
        &[
            (
                "accuracy, unreadable counts as wrong",
                Some(&detection.accuracy),
                all,
            ),
            (
                "accuracy without the unreadable, as the published code counts",
                detection.accuracy_of_read.as_ref(),
                all - confusion.unread(),
            ),
            (
                "precision",
                detection.precision.as_ref(),
                confusion.flagged(),
            ),
            ("recall", detection.recall.as_ref(), errors),
            ("F1", detection.f1.as_ref(), all),
        ],
        "Mean ± sample standard deviation over n runs. Precision is of the notes that were flagged, recall of those with an error; an error whose flag could not be read was not found.",
    )
}

pub fn confusion(detection: &Detection) -> Table {
    let confusion = &detection.confusion;
    let row = |label: &str, counts: [usize; 3]| {
        let counts = counts.map(Cell::Count);
        Row::new([Cell::text(label)].into_iter().chain(counts).collect())
    };
    table(
        "confusion",
        "What was said, by gold",
        vec![
            Column::new("gold", Kind::Text),
            Column::new("error", Kind::Number),
            Column::new("no error", Kind::Number),
            Column::new("unreadable or errored", Kind::Number),
        ],
        vec![
            row(
                "error",
                [
                    confusion.true_positives,
                    confusion.false_negatives,
                    confusion.unread_positives,
                ],
            ),
            row(
                "no error",
                [
                    confusion.false_positives,
                    confusion.true_negatives,
                    confusion.unread_negatives,
                ],
            ),
        ],
        &["Sums over the runs."],
    )
}

pub fn localisation((localisation, detection): (&Localisation, &Detection)) -> Table {
    let confusion = &detection.confusion;
    let errors = confusion.errors();
    let all = errors + confusion.sound();
    table_of_shares(
        "localisation",
        "Localisation: which sentence?",
        &[
            (
                "soft: the sentence most like the words that were given",
                Some(&localisation.accuracy),
                all,
            ),
            (
                "exact: the very words",
                Some(&localisation.accuracy_exact),
                all,
            ),
            (
                "soft, of the notes with an error alone",
                localisation.of_errors.as_ref(),
                errors,
            ),
        ],
        "A note without an error is right where no sentence was named.",
    )
}

pub fn types(detection: &Detection) -> Table {
    let row = |one: &ByType| {
        Row::new(vec![
            Cell::text(&one.kind),
            Cell::Count(one.n),
            Cell::over_runs(Some(&one.detected)),
            Cell::over_runs(Some(&one.located)),
        ])
    };
    table(
        "types",
        "By type of error",
        vec![
            Column::new("type", Kind::Text),
            Column::new("notes", Kind::Number),
            Column::new("detected", Kind::Spread),
            Column::new("located", Kind::Spread),
        ],
        detection.by_type.iter().map(row).collect(),
        &["Located by likeness. Shares are of the notes of the type."],
    )
}
