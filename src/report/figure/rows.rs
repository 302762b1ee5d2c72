//! A figure of rows: a label, the value in words, and under them bars or dots on one axis that all rows share.

use super::scale::Scale;
use super::{Drawing, circle, diamond, line, rectangle, whisker, words};
use crate::text::ellipsis;

const WIDTH: f64 = 340.0;
const MARGIN: f64 = 6.0;
/// The height of a row's line of text.
const WORDS: f64 = 18.0;
/// The approximate widths of a label's character and of a value's.
const CHARACTERS: [f64; 2] = [6.5, 6.1];
/// The height of one lane of marks.
const LANE: f64 = 15.0;
const GAP: f64 = 8.0;
const AXIS: f64 = 22.0;
const TICKS: usize = 4;
/// The width of the text beside a lane where a row has several.
const BESIDE: f64 = 104.0;

pub struct Row {
    pub label: String,
    pub lanes: Vec<Lane>,
}

pub struct Lane {
    /// The number of its colour.
    pub series: usize,
    pub said: String,
    pub marks: Vec<Mark>,
}

/// What is drawn in a lane. Deviations are to either side.
#[derive(Clone, Debug, PartialEq)]
pub enum Mark {
    /// From zero.
    Bar {
        value: f64,
        std: Option<f64>,
    },
    Interval {
        mean: f64,
        low: f64,
        high: f64,
    },
    /// What the paper reports.
    Paper {
        mean: f64,
        low: f64,
        high: f64,
    },
}

impl Mark {
    fn values(&self) -> Vec<f64> {
        match self {
            // A share or a count has no deviation below zero, whatever its arithmetic says.
            Mark::Bar { value, std } => {
                let std = std.unwrap_or(0.0);
                vec![0.0, value.signum() * (value.abs() + std)]
            }
            Mark::Interval { mean, low, high } | Mark::Paper { mean, low, high } => {
                vec![*mean, *low, *high]
            }
        }
    }

    fn draw(&self, series: usize, scale: &Scale, middle: f64) -> String {
        let at = |value: f64| scale.at(value);
        let over = |class: &str, low: f64, high: f64| {
            whisker(class, [at(low), middle], [at(high), middle])
        };
        match self {
            Mark::Bar { value, std } => {
                let (left, right) = (at(value.min(0.0)), at(value.max(0.0)));
                let class = format!("fill s{series}");
                rectangle(&class, [left, middle - 5.0], [right - left, 10.0])
                    + &std.map_or(String::new(), |std| over("error", value - std, value + std))
            }
            Mark::Interval { mean, low, high } => {
                over(&format!("stroke s{series}"), *low, *high)
                    + &circle(&format!("fill s{series}"), [at(*mean), middle], 4.0)
            }
            Mark::Paper { mean, low, high } => {
                line("paper", [at(*low), middle], [at(*high), middle])
                    + &diamond("paper", [at(*mean), middle], 4.0)
            }
        }
    }
}

impl Row {
    /// The height of the text over the lanes: two lines where label and value do not fit on one.
    fn words(&self, beside: f64) -> f64 {
        let said = match (self.lanes.as_slice(), beside > 0.0) {
            ([lane], false) => lane.said.chars().count() as f64,
            _ => 0.0,
        };
        let label = self.label.chars().count() as f64;
        match label * CHARACTERS[0] + said * CHARACTERS[1] > WIDTH - 3.0 * MARGIN && said > 0.0 {
            true => 2.0 * WORDS - 3.0,
            false => WORDS,
        }
    }

    fn height(&self, beside: f64) -> f64 {
        self.words(beside) + self.lanes.len().max(1) as f64 * LANE + GAP
    }
}

/// Of an axis that reaches these values at least.
pub fn draw(title: &str, description: &str, reach: &[f64], rows: &[Row]) -> Drawing {
    let beside = match rows.iter().map(|row| row.lanes.len()).max() {
        Some(2..) => BESIDE,
        _ => 0.0,
    };
    let bottom: f64 = rows.iter().map(|row| row.height(beside)).sum();
    let marks = rows.iter().flat_map(|row| &row.lanes).flat_map(|lane| &lane.marks);
    let values = marks.flat_map(Mark::values).chain(reach.iter().copied());
    // The labels of the first and the last tick reach beyond the axis.
    let scale = Scale::over(values, TICKS, [MARGIN + 8.0, WIDTH - MARGIN - 14.0 - beside]);
    // Below the first label, which would touch it.
    let first = rows.first().map_or(0.0, |row| row.words(beside));
    let mut body = axis(&scale, [first, bottom]);
    let mut top = 0.0;
    for row in rows {
        body += &words(
            "label",
            "start",
            [MARGIN, top + 13.0],
            &ellipsis(&row.label, ((WIDTH - 2.0 * MARGIN) / CHARACTERS[0]) as usize),
        );
        let lanes = top + row.words(beside);
        for (number, lane) in row.lanes.iter().enumerate() {
            let middle = lanes + (number as f64 + 0.5) * LANE;
            for mark in &lane.marks {
                body += &mark.draw(lane.series, &scale, middle);
            }
            let y = if beside > 0.0 { middle + 4.0 } else { lanes - 5.0 };
            body += &words("value", "end", [WIDTH - MARGIN, y], &lane.said);
        }
        top += row.height(beside);
    }
    let size = [WIDTH as u32, (bottom + AXIS) as u32];
    Drawing::new(size, title, description, &body)
}

fn axis(scale: &Scale, [top, bottom]: [f64; 2]) -> String {
    let mut body = String::new();
    for (value, place) in scale.ticks() {
        let class = if value.abs() < 1e-9 { "zero" } else { "grid" };
        body += &line(class, [place, top], [place, bottom]);
        let said = scale.say(value);
        // A long one at the left end has room for its sign.
        let middle = place.max(said.len() as f64 * 2.8);
        body += &words("tick", "middle", [middle, bottom + 14.0], &said);
    }
    body
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(lanes: Vec<Lane>) -> Drawing {
        let row = Row { label: "MED-MAD".to_owned(), lanes };
        draw("Accuracy", "By method.", &[1.0], &[row])
    }

    fn lane(marks: Vec<Mark>) -> Lane {
        Lane { series: 1, said: "0.5000".to_owned(), marks }
    }

    #[test]
    fn a_bar_of_half_ends_half_way() {
        let bar = Mark::Bar { value: 0.5, std: None };
        let drawing = rows(vec![lane(vec![bar])]);
        // The axis runs from 14 to 320.
        assert!(
            drawing.svg.contains(
                "<rect class=\"fill s1\" x=\"14\" y=\"20.5\" width=\"153\" height=\"10\"/>"
            )
        );
        assert!(drawing.svg.contains(">0.5000</text>"));
    }

    #[test]
    fn a_bar_below_zero_ends_at_zero() {
        let bar = Mark::Bar { value: -1.0, std: Some(0.0) };
        let drawing = rows(vec![lane(vec![bar])]);
        assert!(drawing.svg.contains("x=\"14\" y=\"20.5\" width=\"153\""), "{}", drawing.svg);
    }

    #[test]
    fn the_first_label_of_an_axis_keeps_its_sign() {
        let flat = lane(vec![Mark::Interval { mean: 0.0, low: 0.0, high: 0.0 }]);
        let row = Row { label: "MED-MAD".to_owned(), lanes: vec![flat] };
        let drawn = draw("", "", &[0.0], &[row]);
        assert!(drawn.svg.contains("x=\"16.8\" y=\"55\">-0.050</text>"), "{}", drawn.svg);
    }

    #[test]
    fn every_mark_is_drawn_and_more_lanes_are_taller() {
        let interval = Mark::Interval { mean: 0.1, low: -0.1, high: 0.3 };
        let paper = Mark::Paper { mean: 0.2, low: 0.1, high: 0.3 };
        let one = rows(vec![lane(vec![interval.clone(), paper])]);
        assert!(one.svg.contains("class=\"paper\" d=\"M"));
        assert!(one.svg.contains("<circle class=\"fill s1\""));
        let two = rows(vec![lane(vec![interval.clone()]), lane(vec![interval])]);
        assert!(one.svg.contains("height=\"63\"") && two.svg.contains("height=\"78\""));
    }
}
