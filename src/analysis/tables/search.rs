//! How systems that search came to their answers, as tables: what it took, what failed, which sources were shown,
//! and what reviews of their answers are worth.

use super::notes::{Entry, Of};
use crate::analysis::notes::{
    Changes, CriterionAgreement, Judged, ReviewFigures, SearchFigures, Spread,
};
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
    let reviewed = rows
        .iter()
        .filter_map(|row| Some(Of { heading: row.heading, of: row.of.reviews.as_ref()? }));
    let reviewed: Vec<Of<'_, &ReviewFigures>> = reviewed.collect();
    let mut tables = vec![effort(&rows), counts(&rows), sources(&rows)];
    tables.extend(reviews(&reviewed));
    tables.extend(reflexions(&reviewed));
    tables.extend(reviewers(&reviewed));
    tables
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

/// Whether high scores go with right answers.
fn reviews(rows: &[Of<'_, &ReviewFigures>]) -> Option<Table> {
    #[derive(Clone, Copy)]
    struct Line<'a> {
        heading: &'a str,
        what: &'static str,
        band: Option<[f64; 2]>,
        answers: Judged,
    }
    let mut lines = Vec::new();
    for row in rows {
        let mut add = |what, band, answers| {
            lines.push(Line { heading: row.heading, what, band, answers });
        };
        add("accepted", None, row.of.accepted);
        add("rejected", None, row.of.rejected);
        for (what, bands) in [("mean", &row.of.by_mean), ("minimum", &row.of.by_minimum)] {
            for band in bands {
                add(what, Some([band.low, band.high]), band.answers);
            }
        }
    }
    let share = |part: usize, of: usize| (of > 0).then(|| part as f64 / of as f64);
    Table::of("search-reviews", "Do reviews tell right answers from wrong ones?", &lines)
        .grouped_by(|line| line.heading.to_owned())
        .text("answers", |line| match line.band {
            None => line.what.to_owned(),
            Some([low, high]) => format!("{} {low:.1}–{high:.1}", line.what),
        })
        .number("n", |line| line.answers.n)
        .number("flag right", |line| line.answers.n_flag_right)
        .number("share flag right", |line| share(line.answers.n_flag_right, line.answers.n))
        .number("sentence right", |line| line.answers.n_sentence_right)
        .number("share sentence right", |line| {
            share(line.answers.n_sentence_right, line.answers.n)
        })
        .note("Answers to notes with gold of which at least one review could be read, as the reviewers saw them, over all runs. Mean and minimum of the final scores, 1 to 5; a band has its low end and not its high one, the last has 5 too. Where a note has no error, the sentence is right if the answer says so.")
        .unless_empty()
}

fn reflexions(rows: &[Of<'_, &ReviewFigures>]) -> Option<Table> {
    let changes = |row: &Of<'_, &ReviewFigures>| -> Changes { row.of.after_rejection };
    Table::of("search-reflexions", "What the answer after a reflexion changes", rows)
        .text("", |row| row.heading)
        .number("rejected answers with a next one", |row| changes(row).n)
        .number("another verdict", |row| changes(row).n_verdict)
        .number("another sentence", |row| changes(row).n_sentence)
        .number("from wrong to right", |row| changes(row).n_righted)
        .number("from right to wrong", |row| changes(row).n_spoiled)
        .note("The reviewed answers of a note, each compared with the one before. Another verdict: only one of the two names an error. Another sentence: both do, in different sentences. Right and wrong: the sentence, of notes with gold.")
        .unless_empty()
}

fn reviewers(rows: &[Of<'_, &ReviewFigures>]) -> Option<Table> {
    let lines = rows
        .iter()
        .flat_map(|row| row.of.agreement.iter().map(move |of| Of { heading: row.heading, of }));
    let lines: Vec<Of<'_, &CriterionAgreement>> = lines.collect();
    Table::of("search-reviewers", "How far reviewers of one answer agree, by criterion", &lines)
        .grouped_by(|line| line.heading.to_owned())
        .text("criterion", |line| &line.of.criterion)
        .number("pairs of reviews", |line| line.of.pairs)
        .number("mean distance", |line| line.of.distance)
        .number("share equal", |line| line.of.equal)
        .note("Over all pairs of reviews of the same answer that both score the criterion: the mean absolute difference in points of five, and the share of pairs with equal scores.")
        .unless_empty()
}
