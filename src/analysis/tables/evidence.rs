//! Passages beside questions: what was found, whether it holds the question itself, and whether replies name it.

use std::collections::{BTreeMap, HashSet};

use crate::analysis::table::Table;
use crate::experiment::contents::Contents;
use crate::prompts::label;
use crate::record::{CallLine, ItemText, Part, SearchLine};
use crate::systems::medreflex::evidence::leaks;

/// `None` of a run on questions that searched nothing.
pub fn table(contents: &Contents) -> Option<Table> {
    let mut found: BTreeMap<(u32, &str), Vec<SearchLine>> = BTreeMap::new();
    for search in contents.searches.by_key().into_values() {
        found.entry((search.run, &search.item)).or_default().push(search.clone());
    }
    let of = |item: &str| match contents.texts.get(item) {
        Some(ItemText::Question(text)) => text.question.as_str(),
        _ => "",
    };
    let leaking: u32 = found.iter().map(|((_, item), searches)| leaks(of(item), searches)).sum();
    let shown = |searches: &Vec<SearchLine>| -> usize {
        searches.iter().map(|search| search.shown.len()).sum()
    };
    let mut replies = Replies::default();
    for call in contents.calls.by_key().into_values() {
        if let Some(searches) = found.get(&(call.run, call.item.as_str())) {
            replies.take(call, &labels(searches));
        }
    }
    let rows = [
        ("questions searched for", found.len()),
        ("of these, without a passage", found.values().filter(|one| shown(one) == 0).count()),
        ("passages shown", found.values().map(shown).sum()),
        ("passages that share eight words in a row with their question", leaking as usize),
        ("replies to prompts with passages", replies.asked),
        ("of these, naming a passage that was shown", replies.naming),
        ("of these, naming one that was not", replies.inventing),
    ];
    let table = Table::of("evidence", "Passages of the corpus", &rows)
        .text("what", |(what, _)| *what)
        .number("count", |(_, count)| *count)
        .note("Over all runs. A passage that shares eight words in a row with its question may hold its answer: with many of these the gain is not the evidence's. A reply names a passage by its label, such as [1.1].")
        .build();
    (!found.is_empty()).then_some(table)
}

#[derive(Default)]
struct Replies {
    asked: usize,
    naming: usize,
    inventing: usize,
}

impl Replies {
    fn take(&mut self, call: &CallLine, shown: &HashSet<String>) {
        let mut parts = call.messages.iter().flat_map(|message| &message.parts);
        let is_asked = parts.any(|part| matches!(part, Part::Passages { .. }));
        if is_asked && !shown.is_empty() {
            let named: HashSet<String> = cited(&call.text).collect();
            self.asked += 1;
            self.naming += usize::from(!named.is_disjoint(shown));
            self.inventing += usize::from(!named.is_subset(shown));
        }
    }
}

fn labels(searches: &[SearchLine]) -> HashSet<String> {
    let labels = searches
        .iter()
        .flat_map(|search| (1..=search.shown.len()).map(|rank| label(search.step, rank)));
    labels.collect()
}

/// The labels in brackets: `[1.1]`.
fn cited(text: &str) -> impl Iterator<Item = String> {
    let parts = text.split('[').skip(1).filter_map(|rest| rest.split_once(']'));
    let labels = parts.map(|(label, _)| label).filter(|label| {
        let number = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_digit());
        label.split_once('.').is_some_and(|(step, rank)| number(step) && number(rank))
    });
    labels.map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_two_numbers_in_brackets() {
        let text = "By [1.1] and [1.12], not [1], [a.1], [1.] or [2.1";
        assert_eq!(cited(text).collect::<Vec<_>>(), ["1.1", "1.12"]);
    }
}
