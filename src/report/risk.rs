//! Risk and coverage, as a figure: of the cases whose score reaches a threshold, how many there are across and how many of them are wrong up.

use crate::analysis::policy::{Point as Threshold, Score, curves};
use crate::experiment::contents::Contents;
use crate::report::figure::{Key, Line, Plane, Point, Subplot};

const RADIUS: f64 = 2.5;

/// Of a run's first repetition; `None` where nothing that is graded has a score.
pub fn panel(contents: &Contents) -> Option<Subplot> {
    let (cases, curves) = curves(contents);
    let of = |count: usize, of: usize| count as f64 / of as f64;
    let point = |at: &Threshold| Point {
        x: of(at.acted, cases),
        y: of(at.wrong, at.acted),
        std: None,
        radius: RADIUS,
    };
    let line = |(series, (_, curve)): (usize, &(Score, Vec<Threshold>))| Line {
        series,
        points: curve.iter().map(point).collect(),
    };
    let lines: Vec<Line> = curves.iter().enumerate().map(line).collect();
    if lines.is_empty() {
        return None;
    }
    let said = curves.iter().filter_map(|(score, curve)| {
        let last = curve.last()?;
        Some(format!("{score}: {} of {} wrong at the lowest threshold", last.wrong, last.acted))
    });
    let said: Vec<String> = said.collect();
    let keys = curves.iter().enumerate();
    let mut key: Vec<Key> =
        keys.map(|(series, (score, _))| Key::series(series, &score.to_string())).collect();
    key.push(Key::note(
        "A point a threshold: to the right more cases are acted upon. `wardround calibrate` chooses one, on cases of one's own.",
    ));
    Some(Subplot {
        title: "Risk and coverage".to_owned(),
        drawings: vec![
            Plane {
                title: "By score".to_owned(),
                description: format!("Over {cases} cases. {}.", said.join("; ")),
                width: 260,
                height: 230,
                across: "share acted upon".to_owned(),
                up: "share wrong".to_owned(),
                names: Vec::new(),
                reach: [vec![0.0, 1.0], vec![0.0]],
                diagonal: false,
                lines,
            }
            .draw(),
        ],
        key,
    })
}
