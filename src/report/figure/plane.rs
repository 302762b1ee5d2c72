//! A plot with two axes: lines over a common axis, or confidence against accuracy.

use super::scale::Scale;
use super::{Drawing, circle, line, px, words};

const WIDTH: f64 = 260.0;
const HEIGHT: f64 = 230.0;
const LEFT: f64 = 44.0;
const RIGHT: f64 = WIDTH - 14.0;
const TOP: f64 = 8.0;
const FLOOR: f64 = HEIGHT - 40.0;
const TICKS: usize = 5;

/// Shares across, from 0 to 1.
pub struct Plane<'a> {
    pub title: &'a str,
    pub description: String,
    pub across: &'a str,
    pub up: &'a str,
    /// What the axis up must reach.
    pub reach: &'a [f64],
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

impl Plane<'_> {
    pub fn draw(&self) -> Drawing {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let across = points().map(|point| point.x).chain([0.0, 1.0]);
        let x = Scale::over(across, TICKS, [LEFT, RIGHT]);
        let up = points().map(|point| point.y).chain(self.reach.iter().copied());
        let y = Scale::over(up, TICKS, [FLOOR, TOP]);
        let mut body = self.axes(&x, &y);
        if self.diagonal {
            body += &line("diagonal", [x.at(0.0), y.at(0.0)], [x.at(1.0), y.at(1.0)]);
        }
        for one in &self.lines {
            body += &draw(one, &x, &y);
        }
        Drawing::new([WIDTH as u32, HEIGHT as u32], self.title, &self.description, &body)
    }

    fn axes(&self, x: &Scale, y: &Scale) -> String {
        let mut body = String::new();
        for (value, place) in y.ticks() {
            body += &line("grid", [LEFT, place], [RIGHT, place]);
            body += &words("tick", "end", [LEFT - 5.0, place + 4.0], &y.say(value));
        }
        for (value, place) in x.ticks() {
            body += &line("grid", [place, FLOOR], [place, FLOOR + 4.0]);
            body += &words("tick", "middle", [place, FLOOR + 16.0], &x.say(value));
        }
        body += &line("zero", [LEFT, FLOOR], [RIGHT, FLOOR]);
        let middle = (LEFT + RIGHT) / 2.0;
        body += &words("tick", "middle", [middle, HEIGHT - 6.0], self.across);
        // Upright words beside the axis.
        let side = (TOP + FLOOR) / 2.0;
        let turn = format!("<g transform=\"rotate(-90 10 {})\">", px(side));
        body + &turn + &words("tick", "middle", [10.0, side + 1.0], self.up) + "</g>\n"
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
            title: "Accuracy",
            description: "Over rounds.".to_owned(),
            across: "rounds",
            up: "accuracy",
            reach: &[0.0, 1.0],
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
        assert!(drawing.svg.contains("d=\"M44 190L246 8\""), "{}", drawing.svg);
        assert!(
            drawing.svg.contains("class=\"diagonal\" x1=\"44\" y1=\"190\" x2=\"246\" y2=\"8\"")
        );
    }
}
