//! The passages of a search as a prompt quotes them: one rule for prompts, pages and whoever computes them again.

use super::fill;
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
        ("source", &passage.source),
        ("title", &passage.title),
        ("paragraph", if passage.paragraph == 0 { "" } else { &paragraph }),
        ("text", passage.text.as_deref().unwrap_or(NOT_KEPT)),
    ];
    let is_empty = |line: &&str| {
        let mut empty = values.iter().filter(|(_, value)| value.is_empty());
        empty.any(|(name, _)| super::has_placeholder(line, name))
    };
    let lines: Vec<&str> = template.lines().filter(|line| !is_empty(line)).collect();
    fill(&lines.join("\n"), &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_comes_last_and_empty_fields_are_left_out() {
        let passage = |title: &str, paragraph, score| Passage {
            chunk: "a/1#0".into(),
            source: "a".into(),
            title: title.into(),
            paragraph,
            score,
            sha256: String::new(),
            text: Some("{title} stays.".into()),
            url: None,
            date: None,
            licence: None,
        };
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
}
