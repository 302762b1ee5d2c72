//! How systems that search came to their answers, as tables: what it took, what failed, which sources were shown.

use super::notes::{Entry, Of};
use crate::analysis::notes::{SearchFigures, Spread};
use crate::analysis::table::{Cell, Table};
use crate::record::SourceCounts;

/// None where nothing searches.
pub fn all(entries: &[Entry<'_>]) -> Vec<Table> {
    let rows: Vec<Figures<'_>> = entries
        .iter()
        .filter_map(|entry| Some(Of { heading: &entry.heading, of: entry.notes.search.as_ref()? }))
        .collect();
    if rows.is_empty() {
        return Vec::new();
    }
    vec![effort(&rows), counts(&rows), sources(&rows)]
}

type Figures<'a> = Of<'a, &'a SearchFigures>;

fn effort(rows: &[Figures<'_>]) -> Table {
    let spread = |of: &Spread| Cell::Spread { mean: of.mean, std: of.std, n: None, best: false };
    Table::of("search-effort", "Steps, turns and time", rows)
        .text("", |row| row.heading)
        .spread("MedReAct steps a note", |row| spread(&row.of.steps))
        .spread("turns a note", |row| spread(&row.of.turns))
        .spread("reflexions a note", |row| spread(&row.of.reflexions))
        .under("seconds a step")
        .spread("all steps", |row| spread(&row.of.seconds_a_step))
        .spread("those that search", |row| spread(&row.of.seconds_a_searching_step))
        .under("milliseconds of a step that searches")
        .spread("generate", |row| spread(&row.of.generate_ms))
        .spread("embed", |row| spread(&row.of.embed_ms))
        .spread("scan", |row| spread(&row.of.scan_ms))
        .spread("rerank", |row| spread(&row.of.rerank_ms))
        .note("Mean ± sample standard deviation, over the notes of all runs and over their steps. A step is a call with the search that it asks for; calls overlap in time. The published release leaves the last step of each turn, which searches nothing, out of its times: both are given.")
        .build()
}

fn counts(rows: &[Figures<'_>]) -> Table {
    Table::of("search-counts", "What was counted and not folded into «no error»", rows)
        .text("", |row| row.heading)
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
        .build()
}

/// A row for each source of an entry (Table 1, Figure 7).
fn sources(rows: &[Figures<'_>]) -> Table {
    struct Source<'a> {
        row: &'a Figures<'a>,
        counts: &'a SourceCounts,
    }
    let sources: Vec<Source<'_>> = rows
        .iter()
        .flat_map(|row| row.of.corpus.iter().map(move |counts| Source { row, counts }))
        .collect();
    let shown =
        |source: &Source<'_>| source.row.of.shown.get(&source.counts.label).copied().unwrap_or(0);
    let share = |part: u64, whole: u64| if whole == 0 { 0.0 } else { part as f64 / whole as f64 };
    Table::of(
        "search-sources",
        "Sources: what the corpus has of each, and what was shown",
        &sources,
    )
    .grouped_by(|source| source.row.heading.to_owned())
    .text("source", |source| &source.counts.label)
    .number("documents", |source| source.counts.documents as usize)
    .number("chunks", |source| source.counts.chunks as usize)
    .number("share of chunks", |source| {
        let all = source.row.of.corpus.iter().map(|counts| counts.chunks).sum();
        share(source.counts.chunks, all)
    })
    .number("passages shown", shown)
    .number("share of passages", |source| {
        share(shown(source) as u64, source.row.of.shown.values().sum::<usize>() as u64)
    })
    .build()
}
