//! Whether confidence is met, as a table.

use super::Labelled;
use crate::analysis::metrics::calibration::Calibration;
use crate::analysis::table::{Cell, Table};

/// The scores of each, then every bin: how many answers, their mean confidence, the share that is right.
pub fn table(rows: &[Labelled<'_, Calibration>]) -> Table {
    let mut table = Table::of("calibration", "Calibration of the team's confidence", rows)
        .grouped_by(|row| row.group.to_owned())
        .text("", |row| row.label)
        .replies(|row| row.health)
        .number("answers", |row| row.of.n)
        .number("expected calibration error", |row| row.of.ece)
        .number("Brier score", |row| row.of.brier);
    let short = |value: Option<f64>| value.map(|value| Cell::Number(value, 2));
    for (place, bin) in rows.first().into_iter().flat_map(|row| row.of.bins.iter().enumerate()) {
        table = table
            .under(format!("{:.1}–{:.1}", bin.low, bin.high))
            .number("n", |row| Some(row.of.bins.get(place)?.n))
            .number("confidence", |row| short(row.of.bins.get(place)?.confidence))
            .number("right", |row| short(row.of.bins.get(place)?.accuracy));
    }
    table
        .note("Answers by the confidence that the team states: how many, their mean confidence, and the share that is right. Items that errored state none. On notes an answer is whether there is an error, and its confidence that of detection: the arbiter's, else the mean of the agents who gave this answer; of `medreflex` the mean review of an accepted answer, divided by five. A bin holds confidences above its low end, up to and with its high end.")
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metrics::calibration::calibration;

    #[test]
    fn every_bin_is_listed() {
        let calibration = calibration(&[(0.9, true), (0.9, false), (0.3, false)], 10).unwrap();
        let table =
            table(&[Labelled { group: "", label: "A run", of: &calibration, health: None }]);
        assert_eq!(table.columns.len(), 5 + 30);
        assert_eq!(table.rows[0].cells.len(), table.columns.len());
        let nines = table.columns.iter().position(|column| column.over == "0.8–0.9");
        let cells = &table.rows[0].cells[nines.unwrap()..];
        assert_eq!(cells[..3], [Cell::Count(2), Cell::Number(0.9, 2), Cell::Number(0.5, 2)]);
    }

    #[test]
    fn a_row_with_fewer_bins_than_the_first_has_empty_cells() {
        let [ten, five] = [10, 5].map(|bins| calibration(&[(0.9, true)], bins).unwrap());
        let row = |of| Labelled { group: "", label: "", of, health: None };
        let table = table(&[row(&ten), row(&five)]);
        assert_eq!(table.rows[1].cells.last(), Some(&Cell::Nothing));
    }
}
