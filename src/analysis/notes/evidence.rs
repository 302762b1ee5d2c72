//! The passages behind a correction: those that its answer names, else those that share most with it.

use std::collections::HashSet;

use crate::prompts::label;
use crate::record::{EvidenceLine, NoteLine, Passage, SearchLine};
use crate::systems::medreflex::evidence::words;

/// Shorter words without a digit stand everywhere.
const SHORTEST: usize = 4;

/// The passages behind a correction, each with its label.
pub struct Evidence<'a> {
    /// Whether the answer names them.
    pub named: bool,
    pub passages: Vec<(String, &'a Passage)>,
    /// The correction's words that say something, in lower case.
    pub shared: HashSet<String>,
}

/// The passages that a note's answer names; where it names none and there is a correction, the `unnamed` that share most of its words.
pub fn evidence<'a>(note: &NoteLine, searches: &[&'a SearchLine], unnamed: usize) -> Evidence<'a> {
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
    let passages = match named || shared.is_empty() {
        true => passages,
        false => nearest(searches, &shared, unnamed),
    };
    Evidence { named, passages, shared }
}

fn nearest<'a>(
    searches: &[&'a SearchLine],
    shared: &HashSet<String>,
    most: usize,
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
    all.into_iter().take(most).map(|(_, one)| one).collect()
}
