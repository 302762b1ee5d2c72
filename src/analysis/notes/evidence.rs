//! The passages behind a correction: those that its answer names, else those that share most with it.

use std::collections::HashSet;

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
}

/// The passages that a note's answer names; where it names none and there is a correction, those that share most of its words.
pub fn evidence<'a>(note: &NoteLine, searches: &[&'a SearchLine]) -> Evidence<'a> {
    let correction = note.correction.as_deref().unwrap_or_default();
    let says = |word: &String| {
        word.chars().count() >= SHORTEST || word.chars().any(|c| c.is_ascii_digit())
    };
    // The words that say something, in lower case.
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
    Evidence { named, passages }
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

/// Whether a browser may follow an address.
pub fn may_be_followed(url: &str) -> bool {
    ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}
