//! Whether confidence is met, as a figure and as a table: stated confidence across, the share of right answers up.

use crate::analysis::metrics::calibration::{Bin, Calibration};
use crate::report::figure::{Drawing, Line, Plane, Point};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// The radius of a point that stands for all answers.
const RADIUS: f64 = 11.0;
const LEAST_RADIUS: f64 = 2.5;

/// A point a bin that holds answers, as large in area as it holds many; on the diagonal, confidence is met.
pub fn drawing(title: &str, calibration: &Calibration) -> Drawing {
    let point = |bin: &Bin| {
        let share = bin.n as f64 / calibration.n as f64;
        Some(Point {
            x: bin.confidence?,
            y: bin.accuracy?,
            std: None,
            radius: (RADIUS * share.sqrt()).max(LEAST_RADIUS),
        })
    };
    // Each alone: bins are no sequence.
    let points = calibration.bins.iter().filter_map(point);
    let lines = points.map(|point| Line { series: 0, points: vec![point] });
    let (n, ece, brier) = (calibration.n, calibration.ece, calibration.brier);
    Plane {
        title: title.to_owned(),
        description: format!(
            "Reliability of the team's confidence over {n} answers: expected calibration error {ece:.4}, Brier score {brier:.4}."
        ),
        width: 260,
        height: 230,
        across: "team confidence".to_owned(),
        up: "share right".to_owned(),
        names: Vec::new(),
        reach: [vec![0.0, 1.0], vec![0.0, 1.0]],
        diagonal: true,
        lines: lines.collect(),
    }
    .draw()
}

/// A row for each of what is called so, under its group: the scores, then every bin as `share right / confidence (answers)`.
pub fn table(rows: &[(String, String, &Calibration)]) -> Table {
    let bins = rows.first().map_or(&[][..], |(.., one)| &one.bins);
    let mut columns = vec![
        Column::new("", Kind::Text),
        Column::new("answers", Kind::Number),
        Column::new("expected calibration error", Kind::Number),
        Column::new("Brier score", Kind::Number),
    ];
    for bin in bins {
        let over = format!("{:.1}–{:.1}", bin.low, bin.high);
        columns.push(Column::under(&over, "n", Kind::Number));
        columns.push(Column::under(&over, "confidence", Kind::Number));
        columns.push(Column::under(&over, "right", Kind::Number));
    }
    let short = |value: Option<f64>| value.map_or(Cell::Nothing, |value| Cell::Number(value, 2));
    let row = |(group, label, calibration): &(String, String, &Calibration)| {
        let mut cells = vec![
            Cell::text(label),
            Cell::Count(calibration.n),
            Cell::Number(calibration.ece, 4),
            Cell::Number(calibration.brier, 4),
        ];
        for bin in &calibration.bins {
            cells.extend([Cell::Count(bin.n), short(bin.confidence), short(bin.accuracy)]);
        }
        Row { group: group.clone(), cells }
    };
    Table {
        name: "calibration",
        title: "Calibration of the team's confidence".to_owned(),
        columns,
        rows: rows.iter().map(row).collect(),
        notes: vec![
            "Answers by the confidence that the team states: how many, their mean confidence, and the share that is right. Items that errored state none. A bin holds confidences above its low end, up to and with its high end.".to_owned(),
        ],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metrics::calibration::calibration;

    #[test]
    fn empty_bins_are_not_drawn_and_every_bin_is_listed() {
        let calibration = calibration(&[(0.9, true), (0.9, false), (0.3, false)], 10).unwrap();
        let drawing = drawing("A run", &calibration);
        assert_eq!(drawing.body.matches("<circle").count(), 2);
        let table = table(&[(String::new(), "A run".to_owned(), &calibration)]);
        assert_eq!(table.columns.len(), 4 + 30);
        assert_eq!(table.rows[0].cells.len(), table.columns.len());
        let nines = table.columns.iter().position(|column| column.over == "0.8–0.9");
        let cells = &table.rows[0].cells[nines.unwrap()..];
        assert_eq!(cells[..3], [Cell::Count(2), Cell::Number(0.9, 2), Cell::Number(0.5, 2)]);
    }
}
