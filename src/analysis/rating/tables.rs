//! Ratings as tables: scores by run, raters by pair, entries that raters see differently, entries of one run.

use super::key::{Key, KeyRun};
use super::scores::{CitationCounts, FAR, Mos, Rated, RaterPair};
use crate::analysis::table::{Cell, Table, TableBuilder};

/// Digits of a mean, as Table 6 has them.
const DIGITS: usize = 3;

/// All that `rate score` prints.
pub fn all(key: &Key, raters: &[String], entries: &[Rated], pairs: &[RaterPair]) -> Vec<Table> {
    let runs = key.runs.iter().enumerate().map(|(place, run)| {
        let own: Vec<&Rated> = entries.iter().filter(|entry| entry.run == place).collect();
        ((run, Mos::of(&own, raters.len())), (run, CitationCounts::of(&own)))
    });
    let (rows, cited): (Vec<(&KeyRun, Mos)>, Vec<_>) = runs.unzip();
    let mut tables = vec![scores(raters, &rows)];
    tables.extend(citations(&cited));
    if !pairs.is_empty() {
        tables.push(agreement(pairs));
        tables.push(disputed(key, raters, entries));
    }
    tables
}

/// A row a run.
pub fn scores(raters: &[String], rows: &[(&KeyRun, Mos)]) -> Table {
    let mut table = Table::of("ratings", "Mean opinion scores", rows)
        .text("run", |(run, _)| &run.path)
        .text("system", |(run, _)| &run.system)
        .text("models", |(run, _)| run.models.join(", "))
        .number("entries", |(_, mos)| mos.n_entries)
        .number("unrated", |(_, mos)| mos.n_unrated)
        .under("MOS by rater");
    for (place, rater) in raters.iter().enumerate() {
        table = table.number(rater, |(_, mos)| number(mos.by_rater[place]));
    }
    table
        .under("")
        .number("MOS", |(_, mos)| number(mos.mean))
        .number("normalised MOS", |(_, mos)| number(mos.normalised()))
        .note(
            "From 0, completely incorrect, to 3, excellent; normalised to 1. The mean is over all scores that were given; entries that a \
             rater left out are counted as unrated, not as 0.",
        )
        .build()
}

/// A row a run whose answers name sources; `None` where none does.
pub fn citations(rows: &[(&KeyRun, CitationCounts)]) -> Option<Table> {
    let is_citing = |counts: &CitationCounts| counts.rated() + counts.unrated > 0;
    let citing: Vec<_> = rows.iter().filter(|(_, counts)| is_citing(counts)).collect();
    if citing.is_empty() {
        return None;
    }
    let share = |counts: &CitationCounts| {
        (counts.rated() > 0).then(|| counts.supports as f64 / counts.rated() as f64)
    };
    let table = Table::of("citations", "Sources that corrections name", citing)
        .text("run", |(run, _)| &run.path)
        .number("supports", |(_, counts)| counts.supports)
        .number("says nothing of it", |(_, counts)| counts.says_nothing)
        .number("contradicts", |(_, counts)| counts.contradicts)
        .number("unrated", |(_, counts)| counts.unrated)
        .number("share that supports", |(_, counts)| number(share(counts)))
        .note("Verdicts of all raters; the share is of those that were given.");
    Some(table.build())
}

/// A row a pair of raters.
pub fn agreement(pairs: &[RaterPair]) -> Table {
    Table::of("raters", "Agreement of raters", pairs)
        .text("raters", |pair| format!("{} and {}", pair.first, pair.other))
        .number("rated by both", |pair| pair.n_both)
        .number("identical scores", |pair| pair.n_identical)
        .number("agreement", |pair| number(pair.agreement))
        .number("Cohen's kappa, unweighted", |pair| number(pair.kappa))
        .number("Cohen's kappa, quadratic weights", |pair| number(pair.kappa_quadratic))
        .note(
            "Over all entries of the sheet that both rated. Agreement is the share of identical scores; kappa takes off what chance would \
             give, and does not exist where both gave one and the same score throughout.",
        )
        .build()
}

/// A row an entry on which raters are far apart.
fn disputed(key: &Key, raters: &[String], entries: &[Rated]) -> Table {
    let disputed: Vec<&Rated> = entries.iter().filter(|entry| entry.is_disputed()).collect();
    let title = format!("Entries on which raters differ by {FAR} or more");
    let none = disputed.is_empty().then(|| "There is none.".to_owned());
    let table = Table::of("disputed", title, disputed)
        .text("item", |entry| &entry.item)
        .text("entry", |entry| &entry.code)
        .text("run", |entry| &key.runs[entry.run].path);
    by_rater(table, raters).notes(none).build()
}

/// A row an entry of a run.
pub fn rated(raters: &[String], entries: &[Rated]) -> Table {
    let table = Table::of("rated", "Rated entries", entries)
        .text("item", |entry| &entry.item)
        .text("entry", |entry| &entry.code);
    by_rater(table, raters).build()
}

fn by_rater<'a>(mut table: TableBuilder<&'a Rated>, raters: &[String]) -> TableBuilder<&'a Rated> {
    table = table.under("score");
    for (place, rater) in raters.iter().enumerate() {
        table = table.number(rater, |entry| entry.scores[place].map(usize::from));
    }
    table = table.under("comment");
    for (place, rater) in raters.iter().enumerate() {
        table = table.text(rater, |entry| &entry.comments[place]);
    }
    table
}

fn number(value: Option<f64>) -> Option<Cell> {
    value.map(|value| Cell::Number(value, DIGITS))
}
