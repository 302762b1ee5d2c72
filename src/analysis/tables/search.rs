//! How systems that search came to their answers, as tables: what it took, what failed, which sources were shown.

use super::notes::{Entry, Of, table};
use crate::analysis::notes::SearchFigures;
use crate::analysis::table::{Table, TableBuilder};

/// None where nothing searches.
pub fn all(entries: &[Entry<'_>]) -> Vec<Table> {
    [effort(entries), counts(entries), sources(entries)].into_iter().flatten().collect()
}

/// A row an entry that searches.
fn by_entry<'a>(
    name: &'static str,
    title: &str,
    entries: &'a [Entry<'_>],
) -> TableBuilder<Of<'a, &'a SearchFigures>> {
    let row = |entry: &'a Entry<'_>| {
        Some(Of { heading: entry.heading.as_str(), of: entry.notes.search.as_ref()? })
    };
    Table::of(name, title, entries.iter().filter_map(row)).text("", |row| row.heading)
}

fn effort(entries: &[Entry<'_>]) -> Option<Table> {
    by_entry("search-effort", "Steps, turns and time", entries)
        .spread("MedReAct steps a note", |row| row.of.steps)
        .spread("turns a note", |row| row.of.turns)
        .spread("reflexions a note", |row| row.of.reflexions)
        .under("seconds a step")
        .spread("all steps", |row| row.of.seconds_a_step)
        .spread("those that search", |row| row.of.seconds_a_searching_step)
        .under("milliseconds of a step that searches")
        .spread("generate", |row| row.of.generate_ms)
        .spread("embed", |row| row.of.embed_ms)
        .spread("scan", |row| row.of.scan_ms)
        .spread("rerank", |row| row.of.rerank_ms)
        .note("Mean ± sample standard deviation, over the notes of all runs and over their steps. A step is a call with the search that it asks for; calls overlap in time. The published release leaves the last step of each turn, which searches nothing, out of its times: both are given.")
        .unless_empty()
}

fn counts(entries: &[Entry<'_>]) -> Option<Table> {
    let title = "What was counted and not folded into «no error»";
    by_entry("search-counts", title, entries)
        .number("searches", |row| row.of.searches)
        .number("answered before", |row| row.of.cached)
        .number("queries cut", |row| row.of.cut_queries)
        .number("lost steps", |row| row.of.lost_turns as usize)
        .number("unread reviews", |row| row.of.unread_reviews as usize)
        .number("exhausted notes", |row| row.of.exhausted)
        .number("of these «no error»", |row| row.of.exhausted_cleared)
        .number("leaking passages", |row| row.of.leaks as usize)
        .number("ungrounded corrections", |row| row.of.ungrounded)
        .number("unchanged sentences", |row| row.of.unchanged)
        .number("mismatched ids", |row| row.of.mismatches)
        .number("cited sources", |row| row.of.cited)
        .note("A lost step has no action that could be read. An exhausted note used up its turns without an accepted answer; by the paper it has no error, unless nothing of it could be read. A leaking passage shares eight words in a row with its note. A correction is ungrounded where it brings in a word that no shown passage has; a mismatched id comes with the text of another sentence.")
        .unless_empty()
}

/// A row for each source of an entry (Table 1, Figure 7).
fn sources(entries: &[Entry<'_>]) -> Option<Table> {
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
    .text("source", |row| &row.of.0.label)
    .number("documents", |row| row.of.0.documents as usize)
    .number("chunks", |row| row.of.0.chunks as usize)
    .number("share of chunks", |row| row.of.2[0])
    .number("passages shown", |row| row.of.1)
    .number("share of passages", |row| row.of.2[1])
    .unless_empty()
}
