//! Risk and coverage, as a figure: of the cases whose score reaches a threshold, how many there are across and how many of them are wrong up.

use crate::analysis::risk::{Point as Threshold, Risk};
use crate::experiment::contents::Contents;
use crate::report::figure::{Key, Line, Plane, Point, Subplot};

/// Of a run's first repetition; `None` where nothing that is graded has a score.
pub fn panel(contents: &Contents) -> Option<Subplot> {
    let risk = Risk::of(contents);
    let Risk { cases, curves } = &risk;
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
    let found = risk.in_words();
    let caveat = "Each bound holds by itself, for new cases from where these come from, if score and share are chosen before one looks at it.";
    let notes = ["A point a threshold: to the right more cases are acted upon."].into_iter();
    let notes = notes.chain(found.iter().map(String::as_str));
    let notes = notes.chain((!found.is_empty()).then_some(caveat)).map(Key::note);
    let series = curves.iter().enumerate().map(|(series, (score, _))| Key::series(series, score));
    (!curves.is_empty()).then(|| Subplot {
        title: "Risk and coverage".to_owned(),
        drawings: vec![plane.draw()],
        key: series.chain(notes).collect(),
    })
}
