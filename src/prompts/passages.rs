//! The passages of a search as a prompt quotes them: one rule for prompts, pages and whoever computes them again.

use super::filled_lines;
use crate::record::{Passage, SearchLine};

/// What stands where a search found nothing.
pub const NONE_FOUND: &str = "(no passages were found)";
/// What stands for a text that the run directory does not keep.
const NOT_KEPT: &str = "(the run keeps no texts)";

/// Fills `template` with each passage that `search` showed, the worst first and the best last, an empty line between two.
///
/// The placeholders are `{label}` (`2.1`: the best passage of the second step), `{score}` with two decimals, `{source}`, `{title}`,
/// `{paragraph}` and `{text}`. A line whose placeholder has nothing to show, as the title of an untitled document or paragraph 0,
/// is left out.
pub fn passages(template: &str, search: &SearchLine) -> String {
    if search.shown.is_empty() {
        return NONE_FOUND.to_owned();
    }
    let ranked = search.shown.iter().enumerate().rev();
    let texts =
        ranked.map(|(place, passage)| one(template, passage, &label(search.step, place + 1)));
    texts.collect::<Vec<_>>().join("\n\n")
}

/// A passage's name in a prompt: its step and its rank there, both counted from 1.
pub fn label(step: u32, rank: usize) -> String {
    format!("{}.{rank}", step + 1)
}

fn one(template: &str, passage: &Passage, label: &str) -> String {
    // By its shortest decimal: what stands in the log is what is rounded.
    let score: f64 = passage.score.to_string().parse().unwrap_or_default();
    let (score, paragraph) = (format!("{score:.2}"), passage.paragraph.to_string());
    let values = [
        ("label", label),
        ("score", &score),
        ("source", &plain(&passage.source)),
        ("title", &plain(&passage.title)),
        ("paragraph", if passage.paragraph == 0 { "" } else { &paragraph }),
        ("text", &plain(passage.text.as_deref().unwrap_or(NOT_KEPT))),
    ];
    filled_lines(template, &values).join("\n")
}

/// A text in which nothing passes for the end of its passage and the beginning of another: no empty line, and no line that begins as one
/// with a label does.
fn plain(text: &str) -> String {
    let ends = ['\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}'];
    let lines = text.split(ends).filter(|line| !line.trim().is_empty());
    let lines = lines.map(|line| match labelled(line.trim_start()) {
        Some((label, rest)) => format!("({label}){rest}"),
        None => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// The label that a line begins with, in brackets, or is, and what follows it.
fn labelled(line: &str) -> Option<(&str, &str)> {
    let is_label = |text: &str| {
        let is_number = |part: &str| !part.is_empty() && part.chars().all(char::is_numeric);
        text.split_once('.').is_some_and(|(step, rank)| is_number(step) && is_number(rank))
    };
    let (label, rest) = match line.strip_prefix('[') {
        Some(inner) => inner.split_once(']')?,
        None => (line, ""),
    };
    let label = label.trim();
    is_label(label).then_some((label, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(title: &str, paragraph: u32, score: f32) -> Passage {
        Passage {
            chunk: "a/1#0".into(),
            source: "a".into(),
            title: title.into(),
            paragraph,
            score,
            sha256: String::new(),
            text: Some("{title} stays.".into()),
            ..Passage::default()
        }
    }

    #[test]
    fn the_best_comes_last_and_empty_fields_are_left_out() {
        let mut search = SearchLine {
            step: 1,
            shown: vec![passage("T", 2, 0.915), passage("", 0, 0.5)],
            ..SearchLine::default()
        };
        let template =
            "label: {label}\ntitle: {title}\nparagraph: {paragraph}\nscore: {score}\n{text}";
        assert_eq!(
            passages(template, &search),
            "label: 2.2\nscore: 0.50\n{title} stays.\n\nlabel: 2.1\ntitle: T\nparagraph: 2\nscore: 0.92\n{title} stays."
        );
        search.shown.clear();
        assert_eq!(passages(template, &search), NONE_FOUND);
    }

    #[test]
    fn a_passage_is_one_whatever_is_in_it() {
        let forged = |text: &str| Passage { text: Some(text.to_owned()), ..passage("T", 0, 0.5) };
        let shown = |text: &str| {
            let search = SearchLine { shown: vec![forged(text)], ..SearchLine::default() };
            passages("[{label}] {source}: {title}\n{text}", &search)
        };
        for (text, expected) in [
            ("Well.\n  As before. [2.1] holds, 1.1 too.\n1.1 Care", None),
            ("a\n\n[1.1] ward: x", Some("a\n(1.1) ward: x")),
            ("a\r\n \u{2028}\t[ 12.3 ]b\n", Some("a\n(12.3)b")),
            ("[1.1] ward: x", Some("(1.1) ward: x")),
            ("a\u{85}\u{85} 1.1 \u{2029}ward: x", Some("a\n(1.1)\nward: x")),
            ("[1.1\n1.\n[Fig. 1.1]\n.1", None),
        ] {
            let expected = expected.unwrap_or(text);
            assert_eq!(shown(text), format!("[1.1] a: T\n{expected}"));
        }
    }
}
