//! What searching took and gave over a run: steps and turns, seconds and their parts, sources, and what went wrong on the way.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::figures::{Rows, table};
pub use crate::analysis::metrics::over_runs::Spread;
use crate::analysis::metrics::over_runs::mean_and_std;
use crate::analysis::outcomes::Outcomes;
use crate::analysis::table::{Table, TableBuilder};
use crate::record::{SearchLine, SourceCounts, Trajectory, TurnLine};

/// Figures of a system that searches, over all notes of all runs that did not error.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SearchFigures {
    /// Steps a note, over all its turns.
    pub steps: Spread,
    /// Outer turns a note.
    pub turns: Spread,
    /// Reflexions a note: one fewer than turns, where the last turn's answer is accepted or the turns run out.
    pub reflexions: Spread,
    /// Of a step: its call and, where it searches, its search.
    pub seconds_a_step: Spread,
    /// Of the steps that search alone: the published release leaves out the last step of every turn.
    pub seconds_a_searching_step: Spread,
    /// The parts of a searching step in milliseconds.
    pub generate_ms: Spread,
    pub embed_ms: Spread,
    pub scan_ms: Spread,
    pub rerank_ms: Spread,
    pub searches: usize,
    /// Searches that an equal one had answered.
    pub cached: usize,
    /// Queries that the encoder's limit cut.
    pub cut_queries: usize,
    /// What the corpus has of each source that was searched.
    pub corpus: Vec<SourceCounts>,
    /// Shown passages by source.
    pub shown: BTreeMap<String, usize>,
    /// Notes of which no answer was accepted.
    pub exhausted: usize,
    /// Of these, the ones that count as notes without an error, by the paper's rule.
    pub exhausted_cleared: usize,
    pub lost_turns: u32,
    pub unread_reviews: u32,
    /// Shown passages that repeat the note.
    pub leaks: u32,
    /// Corrections that bring in a word which no shown passage has.
    pub ungrounded: usize,
    /// Answers that name a source.
    pub cited: usize,
    pub mismatches: usize,
    pub unchanged: usize,
}

/// `None` of no values.
fn spread(values: &[f64]) -> Option<Spread> {
    mean_and_std(values).map(|(mean, std)| Spread { mean, std, n: None })
}

impl SearchFigures {
    /// `None` of a system that searches nothing, and of a run without a note that ended well.
    pub fn of(outcomes: &Outcomes<'_>) -> Option<SearchFigures> {
        let contents = outcomes.contents;
        let corpus = contents.plan.corpus.as_ref()?.searched.contents.clone();
        let notes = contents.notes();
        let all: Vec<&Trajectory> =
            notes.values().filter_map(|note| note.search.as_ref()).collect();
        let of_notes = |count: &dyn Fn(&Trajectory) -> u32| {
            spread(&all.iter().map(|one| f64::from(count(one))).collect::<Vec<f64>>())
        };
        let sum = |count: &dyn Fn(&TurnLine) -> u32| {
            all.iter().flat_map(|one| &one.turns).map(count).sum::<u32>()
        };
        let searches = &contents.searches.records;
        let by_step = searches.iter().map(|one| ((one.run, &*one.item, one.round, one.step), one));
        let by_step: BTreeMap<_, &SearchLine> = by_step.collect();
        let (mut step_seconds, mut searching_seconds) = (Vec::new(), Vec::new());
        let mut generated_ms = Vec::new();
        for call in contents.calls.records.iter().filter(|call| call.purpose == "step") {
            let mut ms = call.elapsed_ms as f64;
            if let Some(search) = by_step.get(&(call.run, &*call.item, call.round, call.sample)) {
                generated_ms.push(ms);
                ms += search.took.embed_ms + search.took.scan_ms + search.took.rerank_ms;
                searching_seconds.push(ms / 1000.0);
            }
            step_seconds.push(ms / 1000.0);
        }
        // Where nothing was done nothing took time.
        let nothing = Spread { mean: 0.0, std: None, n: None };
        let took = |values: &[f64]| spread(values).unwrap_or(nothing);
        let part = |part: &dyn Fn(&SearchLine) -> f64| {
            took(&searches.iter().map(part).collect::<Vec<f64>>())
        };
        let mut shown: BTreeMap<String, usize> = BTreeMap::new();
        for passage in searches.iter().flat_map(|search| &search.shown) {
            *shown.entry(passage.source.clone()).or_default() += 1;
        }
        let count = |is: &dyn Fn(&Trajectory) -> bool| all.iter().filter(|one| is(one)).count();
        Some(SearchFigures {
            steps: of_notes(&|one| one.turns.iter().map(|turn| turn.steps).sum())?,
            turns: of_notes(&|one| one.turns.len() as u32)?,
            reflexions: of_notes(&|one| one.reflexions)?,
            seconds_a_step: took(&step_seconds),
            seconds_a_searching_step: took(&searching_seconds),
            generate_ms: took(&generated_ms),
            embed_ms: part(&|search| search.took.embed_ms),
            scan_ms: part(&|search| search.took.scan_ms),
            rerank_ms: part(&|search| search.took.rerank_ms),
            searches: searches.len(),
            cached: searches.iter().filter(|search| search.cached).count(),
            cut_queries: searches.iter().filter(|search| search.query_cut).count(),
            corpus,
            shown,
            exhausted: count(&|one| one.exhausted),
            exhausted_cleared: notes
                .values()
                .filter(|note| note.flag.is_clear())
                .filter(|note| note.search.as_ref().is_some_and(|one| one.exhausted))
                .count(),
            lost_turns: sum(&|turn| turn.lost_turns),
            unread_reviews: sum(&|turn| turn.unread_reviews),
            leaks: all.iter().map(|one| one.leaks).sum(),
            ungrounded: count(&|one| one.grounded == Some(false)),
            cited: count(&|one| !one.evidence.is_empty()),
            mismatches: count(&|one| one.mismatch),
            unchanged: count(&|one| one.unchanged),
        })
    }
}

/// Steps, counts and sources; none where nothing searches.
pub(super) fn tables(entries: Rows<'_>) -> Vec<Table> {
    [effort(entries), counts(entries), sources(entries)].into_iter().flatten().collect()
}

/// A row an entry that searches, and what it is called.
fn by_entry<'a>(
    name: &'static str,
    title: &str,
    entries: Rows<'a>,
) -> TableBuilder<(&'a str, &'a SearchFigures)> {
    let rows = entries.iter().filter_map(|row| Some((row.group.as_str(), row.of.search.as_ref()?)));
    Table::of(name, title, rows).text("", |row| row.0)
}

fn effort(entries: Rows<'_>) -> Option<Table> {
    by_entry("search-effort", "Steps, turns and time", entries)
        .spread("MedReAct steps a note", |row| row.1.steps)
        .spread("turns a note", |row| row.1.turns)
        .spread("reflexions a note", |row| row.1.reflexions)
        .under("seconds a step")
        .spread("all steps", |row| row.1.seconds_a_step)
        .spread("those that search", |row| row.1.seconds_a_searching_step)
        .under("milliseconds of a step that searches")
        .spread("generate", |row| row.1.generate_ms)
        .spread("embed", |row| row.1.embed_ms)
        .spread("scan", |row| row.1.scan_ms)
        .spread("rerank", |row| row.1.rerank_ms)
        .note("Mean ± sample standard deviation, over the notes of all runs and over their steps. A step is a call with the search that it asks for; calls overlap in time. The published release leaves the last step of each turn, which searches nothing, out of its times: both are given.")
        .unless_empty()
}

fn counts(entries: Rows<'_>) -> Option<Table> {
    let title = "What was counted and not folded into «no error»";
    by_entry("search-counts", title, entries)
        .number("searches", |row| row.1.searches)
        .number("answered before", |row| row.1.cached)
        .number("queries cut", |row| row.1.cut_queries)
        .number("lost steps", |row| row.1.lost_turns as usize)
        .number("unread reviews", |row| row.1.unread_reviews as usize)
        .number("exhausted notes", |row| row.1.exhausted)
        .number("of these «no error»", |row| row.1.exhausted_cleared)
        .number("leaking passages", |row| row.1.leaks as usize)
        .number("ungrounded corrections", |row| row.1.ungrounded)
        .number("unchanged sentences", |row| row.1.unchanged)
        .number("mismatched ids", |row| row.1.mismatches)
        .number("cited sources", |row| row.1.cited)
        .note("A lost step has no action that could be read. An exhausted note used up its turns without an accepted answer; by the paper it has no error, unless nothing of it could be read. A leaking passage shares eight words in a row with its note. A correction is ungrounded where it brings in a word that no shown passage has; a mismatched id comes with the text of another sentence.")
        .unless_empty()
}

/// A row for each source of an entry (Table 1, Figure 7).
fn sources(entries: Rows<'_>) -> Option<Table> {
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    let title = "Sources: what the corpus has of each, and what was shown";
    table("search-sources", title, entries, |notes| {
        let search = notes.search.as_ref()?;
        let chunks: u64 = search.corpus.iter().map(|counts| counts.chunks).sum();
        let passages: usize = search.shown.values().sum();
        Some(search.corpus.iter().map(move |counts| {
            let shown = search.shown.get(&counts.label).copied().unwrap_or(0);
            let shares = [share(counts.chunks, chunks), share(shown as u64, passages as u64)];
            (counts, shown, shares)
        }))
    })
    .text("source", |row| &row.0.label)
    .number("documents", |row| row.0.documents as usize)
    .number("chunks", |row| row.0.chunks as usize)
    .number("share of chunks", |row| row.2[0])
    .number("passages shown", |row| row.1)
    .number("share of passages", |row| row.2[1])
    .unless_empty()
}

#[cfg(test)]
mod tests;
