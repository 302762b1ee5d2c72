//! The passages behind a correction: those that its answer names, else those that share most with it.

use std::collections::HashSet;

use serde::Serialize;

use crate::prompts::label;
use crate::record::{EvidenceLine, NoteLine, Passage, SearchLine};
use crate::systems::medreflex::evidence::words;

/// Shorter words without a digit stand everywhere.
const SHORTEST: usize = 4;

/// Passages that stand for the sources where the answer names none.
const UNNAMED_SOURCES: usize = 3;

/// The passages behind a correction, each with its label.
pub struct Evidence<'a> {
    /// Whether the answer names them.
    pub named: bool,
    pub passages: Vec<(String, &'a Passage)>,
    /// The correction's words that say something, in lower case.
    pub shared: HashSet<String>,
}

/// A piece of a passage; words that the correction shares are marked.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Segment {
    pub text: String,
    pub shared: bool,
}

/// The passages that a note's answer names; where it names none and there is a correction, those that share most of its words.
pub fn evidence<'a>(note: &NoteLine, searches: &[&'a SearchLine]) -> Evidence<'a> {
    let correction = note.correction.as_deref().unwrap_or_default();
    let says = |word: &String| {
        word.chars().count() >= SHORTEST || word.chars().any(|c| c.is_ascii_digit())
    };
    let shared: HashSet<String> = words(correction).into_iter().filter(says).collect();
    let of_line = |line: &EvidenceLine| {
        let mut all = searches.iter();
        let found = all.find(|search| (search.round, search.step) == (line.round, line.step))?;
        let passage = found.shown.get((line.rank as usize).checked_sub(1)?)?;
        Some((label(line.step, line.rank as usize), passage))
    };
    let lines = note.search.iter().flat_map(|trajectory| &trajectory.evidence);
    let passages: Vec<(String, &Passage)> = lines.filter_map(of_line).collect();
    let named = !passages.is_empty();
    let passages = if named || shared.is_empty() { passages } else { nearest(searches, &shared) };
    Evidence { named, passages, shared }
}

fn nearest<'a>(
    searches: &[&'a SearchLine],
    shared: &HashSet<String>,
) -> Vec<(String, &'a Passage)> {
    let mut seen = HashSet::new();
    let mut all = Vec::new();
    for search in searches {
        for (rank, passage) in (1..).zip(&search.shown) {
            let text = passage.text.as_deref().unwrap_or_default();
            let own: HashSet<String> = words(text).into_iter().collect();
            let count = own.intersection(shared).count();
            if count > 0 && seen.insert(&passage.chunk) {
                all.push((count, (label(search.step, rank), passage)));
            }
        }
    }
    // Stable: of equals the one that was found first.
    all.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    all.into_iter().take(UNNAMED_SOURCES).map(|(_, one)| one).collect()
}

/// Where a passage is from: its source, paragraph, date and licence.
pub fn facts(passage: &Passage) -> impl Iterator<Item = String> {
    let paragraph = (passage.paragraph > 0).then(|| format!("paragraph {}", passage.paragraph));
    let facts =
        [Some(passage.source.clone()), paragraph, passage.date.clone(), passage.licence.clone()];
    facts.into_iter().flatten()
}

/// A text in pieces: the words of `shared`, and what stands between them.
pub fn segments(text: &str, shared: &HashSet<String>) -> Vec<Segment> {
    let mut segments: Vec<Segment> = Vec::new();
    let mut push = |text: &str, shared: bool| match segments.last_mut() {
        Some(last) if last.shared == shared => last.text.push_str(text),
        _ if text.is_empty() => {}
        _ => segments.push(Segment { text: text.to_owned(), shared }),
    };
    let mut rest = text;
    while let Some(start) = rest.find(char::is_alphanumeric) {
        push(&rest[..start], false);
        let length = rest[start..].find(|c: char| !c.is_alphanumeric());
        let end = length.map_or(rest.len(), |length| start + length);
        let word = &rest[start..end];
        push(word, shared.contains(&word.to_lowercase()));
        rest = &rest[end..];
    }
    push(rest, false);
    segments
}

/// Whether a browser may follow an address.
pub fn may_be_followed(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_words_are_marked_whole() {
        let shared = HashSet::from(["beta".to_owned(), "10".to_owned()]);
        let told: String = segments("Beta-agonists, 10 mg; alphabeta.", &shared)
            .iter()
            .map(|one| if one.shared { format!("[{}]", one.text) } else { one.text.clone() })
            .collect();
        assert_eq!(told, "[Beta]-agonists, [10] mg; alphabeta.");
        assert_eq!(segments("", &shared), []);
    }
}
