//! Figures as inline SVG: drawn in pixels of their own, so that their text keeps its size on a phone; coloured by the page's style.

mod chart;
mod plane;
mod rows;
mod scale;

pub use chart::{Chart, Drawn};
pub use plane::{Line, Plane, Point};
pub use rows::{Lane, Mark, Row, draw};

use serde::Serialize;

use super::escape::escape;

/// A drawing, which tells screen readers its title and what it shows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Drawing {
    pub title: String,
    pub svg: String,
}

impl Drawing {
    /// Of SVG elements.
    fn new([width, height]: [u32; 2], title: &str, description: &str, body: &str) -> Drawing {
        let (escaped, description) = (escape(title), escape(description));
        let svg = format!(
            "<svg class=\"plot\" role=\"img\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" aria-label=\"{escaped}. {description}\">\n<title>{escaped}</title><desc>{description}</desc>\n{body}</svg>\n"
        );
        Drawing { title: title.to_owned(), svg }
    }
}

/// Drawings under one title, with one legend.
#[derive(Serialize)]
pub struct Subplot {
    pub title: String,
    pub drawings: Vec<Drawing>,
    pub key: Vec<Key>,
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Key {
    /// A class of the page's style; empty for a remark.
    pub swatch: String,
    pub label: String,
}

impl Key {
    pub fn series(number: usize, label: &str) -> Key {
        Key { swatch: format!("s{number}"), label: label.to_owned() }
    }

    pub fn note(label: &str) -> Key {
        Key { swatch: String::new(), label: label.to_owned() }
    }
}

/// A coordinate with one decimal.
fn px(place: f64) -> String {
    let text = format!("{place:.1}");
    text.strip_suffix(".0").unwrap_or(&text).to_owned()
}

fn line(class: &str, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2]) -> String {
    let (x1, y1, x2, y2) = (px(x1), px(y1), px(x2), px(y2));
    format!("<line class=\"{class}\" x1=\"{x1}\" y1=\"{y1}\" x2=\"{x2}\" y2=\"{y2}\"/>\n")
}

/// A line with a short stroke across either end.
fn whisker(class: &str, from: [f64; 2], to: [f64; 2]) -> String {
    let [x, y] = if from[1] == to[1] { [0.0, 3.0] } else { [3.0, 0.0] };
    let end = |at: [f64; 2]| line(class, [at[0] - x, at[1] - y], [at[0] + x, at[1] + y]);
    line(class, from, to) + &end(from) + &end(to)
}

fn rectangle(class: &str, [x, y]: [f64; 2], [width, height]: [f64; 2]) -> String {
    let (x, y, width, height) = (px(x), px(y), px(width.max(0.0)), px(height.max(0.0)));
    format!("<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\"/>\n")
}

fn circle(class: &str, [x, y]: [f64; 2], radius: f64) -> String {
    let (x, y, radius) = (px(x), px(y), px(radius));
    format!("<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n")
}

fn diamond(class: &str, [x, y]: [f64; 2], radius: f64) -> String {
    let (left, right, top, bottom) =
        (px(x - radius), px(x + radius), px(y - radius), px(y + radius));
    let (x, y) = (px(x), px(y));
    format!("<path class=\"{class}\" d=\"M{x} {top}L{right} {y}L{x} {bottom}L{left} {y}Z\"/>\n")
}

/// `anchor` is SVG's: start, middle or end.
fn words(class: &str, anchor: &str, [x, y]: [f64; 2], text: &str) -> String {
    let (x, y, text) = (px(x), px(y), escape(text));
    format!("<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x}\" y=\"{y}\">{text}</text>\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_text() {
        let hostile = "</text></svg><script>alert(1)</script>\"";
        let body = words("label", "start", [0.0, 10.0], hostile);
        let Drawing { svg, .. } = Drawing::new([340, 20], hostile, hostile, &body);
        assert!(!svg.contains("<script"));
        assert_eq!(svg.matches("</svg>").count(), 1);
        assert_eq!(svg.matches("</text>").count(), 1);
    }

    #[test]
    fn places_are_short() {
        assert_eq!([1.0, 2.25, 3.96].map(px), ["1", "2.2", "4"]);
    }
}
