//! The passages that a correction's answer names, as those of earlier versions could.

use crate::prompts::label;
use crate::record::{EvidenceLine, NoteLine, Passage, SearchLine};

/// The passages that a note's answer names, each with its label.
pub fn evidence<'a>(note: &NoteLine, searches: &[&'a SearchLine]) -> Vec<(String, &'a Passage)> {
    let of_line = |line: &EvidenceLine| {
        let mut all = searches.iter();
        let found = all.find(|search| (search.round, search.step) == (line.round, line.step))?;
        let passage = found.shown.get((line.rank as usize).checked_sub(1)?)?;
        Some((label(line.step, line.rank as usize), passage))
    };
    let lines = note.search.iter().flat_map(|trajectory| &trajectory.evidence);
    lines.filter_map(of_line).collect()
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
