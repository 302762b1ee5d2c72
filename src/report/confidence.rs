//! How sure a run was, as figures: whether that is met, and what acting upon it from a threshold on would cost.

use crate::analysis::metrics::calibration::{Bin, Calibration};
use crate::analysis::risk::{Risk, Threshold};
use crate::experiment::contents::Contents;
use crate::report::figure::{Drawing, Key, Line, Plane, Point, Subplot};

/// The radius of a point that stands for all answers.
const RADIUS: f64 = 11.0;
const LEAST_RADIUS: f64 = 2.5;

/// A point a bin that holds answers, as large in area as it holds many; on the diagonal, confidence is met.
pub fn calibration(title: &str, found: &Calibration) -> Drawing {
    let point = |bin: &Bin| {
        let share = bin.n as f64 / found.n as f64;
        Some(Point {
            x: bin.confidence?,
            y: bin.accuracy?,
            radius: (RADIUS * share.sqrt()).max(LEAST_RADIUS),
        })
    };
    // Each alone: bins are no sequence.
    let points = found.bins.iter().filter_map(point);
    let lines = points.map(|point| Line { series: 0, points: vec![point] });
    let (n, ece, brier) = (found.n, found.ece, found.brier);
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

/// Risk and coverage: of the cases whose score reaches a threshold, how many there are across and how many of them are wrong up. Of a
/// run's first repetition; `None` where nothing that is graded has a score.
pub fn risk(contents: &Contents) -> Option<Subplot> {
    let found = Risk::of(contents);
    let Risk { cases, curves } = &found;
    let of = |count: usize, of: usize| count as f64 / of as f64;
    let point = |at: &Threshold| {
        let [x, y] = [of(at.above, *cases), of(at.wrong, at.above)];
        Point { x, y, radius: 2.5 }
    };
    let lines = curves.iter().enumerate().map(|(series, (_, curve))| {
        let points = curve.iter().map(point).collect();
        Line { series, points }
    });
    let plane = Plane {
        title: "By score",
        description: format!("Over {cases} cases; of those that ask nearly the same one counts."),
        across: "share acted upon",
        up: "share wrong",
        reach: &[0.0],
        diagonal: false,
        lines: lines.collect(),
    };
    let said = found.in_words();
    let caveat = "Each bound holds by itself, for new cases from where these come from, if score and share are chosen before one looks at it.";
    let notes = ["A point a threshold: to the right more cases are acted upon."].into_iter();
    let notes = notes.chain(said.iter().map(String::as_str));
    let notes = notes.chain((!said.is_empty()).then_some(caveat)).map(Key::note);
    let series = curves.iter().enumerate().map(|(series, (score, _))| Key::series(series, score));
    (!curves.is_empty()).then(|| Subplot {
        title: "Risk and coverage".to_owned(),
        drawings: vec![plane.draw()],
        key: series.chain(notes).collect(),
    })
}

#[cfg(test)]
mod tests {
    use crate::analysis::metrics::calibration::calibration;

    #[test]
    fn empty_bins_are_not_drawn() {
        let calibration = calibration(&[(0.9, true), (0.9, false), (0.3, false)], 10).unwrap();
        let drawing = super::calibration("A run", &calibration);
        assert_eq!(drawing.svg.matches("<circle").count(), 2);
    }
}
