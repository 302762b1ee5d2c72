//! What the shares of detection and localisation hide: unread answers, exact sentences, precision and recall.

use super::Entry;
use crate::report::table::{Cell, Column, Kind, Table};

pub fn table(entries: &[Entry<'_>]) -> Table {
    let row = |entry: &Entry<'_>| {
        let detection = entry.notes.detection.as_ref();
        let unread = detection.map(|one| one.confusion.unread());
        let localisation = entry.notes.localisation.as_ref();
        let correction = entry.notes.correction.as_ref();
        let pairs = correction.map(|one| one.n_pairs.iter().sum());
        entry.row([
            Cell::over_runs(detection.and_then(|one| one.precision.as_ref())),
            Cell::over_runs(detection.and_then(|one| one.recall.as_ref())),
            Cell::over_runs(detection.and_then(|one| one.f1.as_ref())),
            unread.map_or(Cell::Nothing, Cell::Count),
            Cell::over_runs(detection.and_then(|one| one.accuracy_of_read.as_ref())),
            Cell::over_runs(localisation.map(|one| &one.accuracy)),
            Cell::over_runs(localisation.map(|one| &one.accuracy_exact)),
            Cell::over_runs(localisation.and_then(|one| one.of_errors.as_ref())),
            pairs.map_or(Cell::Nothing, Cell::Count),
        ])
    };
    let spread = |over: &str, label: &str| Column::under(over, label, Kind::Spread);
    Table {
        name: "detection",
        title: "Detection and localisation more closely".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            spread("detection", "precision"),
            spread("detection", "recall"),
            spread("detection", "F1"),
            Column::under("detection", "unread", Kind::Number),
            spread("detection", "accuracy of the read"),
            spread("localisation", "by likeness"),
            spread("localisation", "to the letter"),
            spread("localisation", "of errors"),
            Column::new("corrected pairs", Kind::Number),
        ],
        rows: entries.iter().map(row).collect(),
        notes: vec![
            "Unread: flags that could not be read, over all runs; they count as wrong everywhere but in the accuracy of the read, which is the published code's. To the letter: the sentence that the system quotes or numbers must be the note's.".to_owned(),
        ],
    }
}
