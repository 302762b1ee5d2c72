//! A plot with two axes: lines over a common axis, or confidence against accuracy.

use super::scale::Scale;
use super::{Drawing, circle, line, px, whisker, words};
use crate::text::ellipsis;

const LEFT: f64 = 44.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 8.0;
const BOTTOM: f64 = 40.0;
const TICKS: usize = 5;
/// The approximate width of a tick label's character.
const CHARACTER: f64 = 6.5;

#[derive(Default)]
pub struct Plane {
    pub title: String,
    pub description: String,
    pub width: u32,
    pub height: u32,
    pub across: String,
    pub up: String,
    /// Labels of the axis' values 0, 1, …, instead of numbers.
    pub names: Vec<String>,
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
    /// To either side of `y`.
    pub std: Option<f64>,
    pub radius: f64,
}

impl Point {
    /// The lower end of its deviation; a share has none below zero.
    fn below(&self) -> f64 {
        let low = self.y - self.std.unwrap_or(0.0);
        if self.y < 0.0 { low } else { low.max(0.0) }
    }
}

impl Plane {
    pub fn draw(&self) -> Drawing {
        let (width, height) = (f64::from(self.width), f64::from(self.height));
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let names = self.names.len();
        let across = points().map(|point| point.x).chain(self.reach[0].iter().copied());
        let x = match names {
            0 => Scale::over(across, TICKS, [LEFT, width - RIGHT]),
            _ => Scale::over([-0.5, names as f64 - 0.5], 2 * names, [LEFT, width - RIGHT]),
        };
        let up = points().flat_map(|point| {
            let std = point.std.unwrap_or(0.0);
            [point.below(), point.y + std]
        });
        let y = Scale::over(up.chain(self.reach[1].iter().copied()), TICKS, [height - BOTTOM, TOP]);
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
        let named = self.names.iter().enumerate();
        let room = (x.at(1.0) - x.at(0.0)) / CHARACTER;
        let named = named.map(|(value, name)| (x.at(value as f64), ellipsis(name, room as usize)));
        let ticks: Vec<(f64, String)> = match self.names.is_empty() {
            true => x.ticks().map(|(value, place)| (place, x.say(value))).collect(),
            false => named.collect(),
        };
        for (place, said) in ticks {
            body += &line("grid", [place, floor], [place, floor + 4.0]);
            body += &words("tick", "middle", [place, floor + 16.0], &said);
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
        let place = x.at(point.x);
        if let Some(std) = point.std {
            let (low, high) = (y.at(point.below()), y.at(point.y + std));
            body += &whisker(&format!("stroke s{series}"), [place, low], [place, high]);
        }
        body += &circle(&format!("fill s{series}"), [place, y.at(point.y)], point.radius);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plane(names: &[&str], points: Vec<Point>) -> Drawing {
        Plane {
            title: "Accuracy".to_owned(),
            description: "Over rounds.".to_owned(),
            width: 340,
            height: 240,
            across: "rounds".to_owned(),
            up: "accuracy".to_owned(),
            names: names.iter().map(|name| name.to_string()).collect(),
            reach: [vec![0.0, 1.0], vec![0.0, 1.0]],
            diagonal: true,
            lines: vec![Line { series: 2, points }],
        }
        .draw()
    }

    fn point(x: f64, y: f64) -> Point {
        Point { x, y, std: None, radius: 3.0 }
    }

    #[test]
    fn points_stand_where_they_belong() {
        let drawing = plane(&[], vec![point(0.0, 0.0), point(1.0, 1.0)]);
        assert!(drawing.svg.contains("d=\"M44 200L326 8\""), "{}", drawing.svg);
        assert!(
            drawing.svg.contains("class=\"diagonal\" x1=\"44\" y1=\"200\" x2=\"326\" y2=\"8\"")
        );
    }

    #[test]
    fn named_places_have_their_names_and_room_at_either_end() {
        let drawing = plane(&["0", "1", "2", "3"], vec![point(0.0, 0.5), point(3.0, 0.5)]);
        for name in ["0", "1", "2", "3"] {
            assert!(drawing.svg.contains(&format!(">{name}</text>")));
        }
        assert!(drawing.svg.contains("d=\"M79.2 "), "{}", drawing.svg);
    }
}
