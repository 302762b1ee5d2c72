//! Whether confidence is met, as a figure: stated confidence across, the share of right answers up.

use crate::analysis::metrics::calibration::{Bin, Calibration};
use crate::report::figure::{Drawing, Line, Plane, Point};

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
            radius: (RADIUS * share.sqrt()).max(LEAST_RADIUS),
        })
    };
    // Each alone: bins are no sequence.
    let points = calibration.bins.iter().filter_map(point);
    let lines = points.map(|point| Line { series: 0, points: vec![point] });
    let (n, ece, brier) = (calibration.n, calibration.ece, calibration.brier);
    Plane {
        title,
        description: format!(
            "Reliability of the team's confidence over {n} answers: expected calibration error {ece:.4}, Brier score {brier:.4}."
        ),
        across: "team confidence",
        up: "share right",
        reach: &[0.0, 1.0],
        diagonal: true,
        lines: lines.collect(),
    }
    .draw()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::analysis::metrics::calibration::calibration;

    #[test]
    fn empty_bins_are_not_drawn() {
        let calibration = calibration(&[(0.9, true), (0.9, false), (0.3, false)], 10).unwrap();
        let drawing = drawing("A run", &calibration);
        assert_eq!(drawing.svg.matches("<circle").count(), 2);
    }
}
