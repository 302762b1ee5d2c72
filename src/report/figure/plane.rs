//! A plot with two axes: lines over a common axis, or confidence against accuracy.

use super::scale::Scale;
use super::{Drawing, circle, line, px, words};

const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 40.0;
const TICKS: usize = 5;

#[derive(Default)]
pub struct Plane {
    pub title: String,
    pub description: String,
    pub width: u32,
    pub height: u32,
    pub across: String,
    pub up: String,
    /// Values that the axes must reach.
    pub reach: [Vec<f64>; 2],
    /// Whether to draw the line on which both axes are equal.
    pub diagonal: bool,
    pub lines: Vec<Line>,
}

pub struct Line {
    pub series: usize,
    /// In order; joined where there are several.
    pub points: Vec<Point>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    pub x: f64,
    pub y: f64,
    pub radius: f64,
}

impl Plane {
    pub fn draw(&self) -> Drawing {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = points().map(|point| point.x).chain(self.reach[0].iter().copied());
        let x = Scale::over(across, TICKS, [LEFT, width - RIGHT]);
        let up = points().map(|point| point.y).chain(self.reach[1].iter().copied());
        let y = Scale::over(up, TICKS, [height - BOTTOM, TOP]);
        let mut body = self.axes(&x, &y, [width, height]);
        if self.diagonal {
            body += &line("diagonal", [x.at(0.0), y.at(0.0)], [x.at(1.0), y.at(1.0)]);
        }
        for one in &self.lines {
            body += &draw(one, &x, &y);
        }
        Drawing::new([self.width, self.height], &self.title, &self.description, &body)
    }

    fn axes(&self, x: &Scale, y: &Scale, [width, height]: [f64; 2]) -> String {
        let floor = height - BOTTOM;
        let mut body = String::new();
        for (value, place) in y.ticks() {
            body += &line("grid", [LEFT, place], [width - RIGHT, place]);
            body += &words("tick", "end", [LEFT - 5.0, place + 4.0], &y.say(value));
        }
        for (value, place) in x.ticks() {
            body += &line("grid", [place, floor], [place, floor + 4.0]);
            body += &words("tick", "middle", [place, floor + 16.0], &x.say(value));
        }
        body += &line("zero", [LEFT, floor], [width - RIGHT, floor]);
        let middle = (LEFT + width - RIGHT) / 2.0;
        body += &words("tick", "middle", [middle, height - 6.0], &self.across);
        // Upright words beside the axis.
        let side = (TOP + floor) / 2.0;
        let turn = format!("<g transform=\"rotate(-90 10 {})\">", px(side));
        body + &turn + &words("tick", "middle", [10.0, side + 1.0], &self.up) + "</g>\n"
    }
}

fn draw(one: &Line, x: &Scale, y: &Scale) -> String {
    let places: Vec<String> = one
        .points
        .iter()
        .map(|point| format!("{} {}", px(x.at(point.x)), px(y.at(point.y))))
        .collect();
    let series = one.series;
    let mut body = String::new();
    if places.len() > 1 {
        let path = places.join("L");
        body += &format!("<path class=\"joined s{series}\" d=\"M{path}\"/>\n");
    }
    for point in &one.points {
        body += &circle(&format!("fill s{series}"), [x.at(point.x), y.at(point.y)], point.radius);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(points: Vec<Point>) -> Drawing {
        Plane {
            title: "Accuracy".to_owned(),
            description: "Over rounds.".to_owned(),
            width: 340,
            height: 240,
            across: "rounds".to_owned(),
            up: "accuracy".to_owned(),
            reach: [vec![0.0, 1.0], vec![0.0, 1.0]],
            diagonal: true,
            lines: vec![Line { series: 2, points }],
        }
        .draw()
    }

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, radius: 3.0 }
    }

    #[test]
    fn points_stand_where_they_belong() {
        let drawing = plane(vec![point(0.0, 0.0), point(1.0, 1.0)]);
        assert!(drawing.svg.contains("d=\"M44 200L326 8\""), "{}", drawing.svg);
        assert!(
            drawing.svg.contains("class=\"diagonal\" x1=\"44\" y1=\"200\" x2=\"326\" y2=\"8\"")
        );
    }
}
