//! The tables of notes, for one run or for each cell of a recipe: detection, localisation, error types, correction, consensus, confidence,
//! cost.

use super::correction::correction;
use super::search;
use crate::analysis::health::{self, ParseHealth};
use crate::analysis::metrics::over_runs::{OverRuns, share};
use crate::analysis::notes::{
    CACHED_PRICE, COMPLETION_PRICE, Detection, NoteFigures, PROMPT_PRICE,
};
use crate::analysis::table::{Cell, Table, TableBuilder};

/// Figures, and what their rows are headed by; empty for a run alone.
pub struct Entry<'a> {
    pub heading: String,
    pub notes: &'a NoteFigures,
    /// How the replies behind them were read.
    pub health: Option<ParseHealth>,
}

/// A row of one entry's table.
#[derive(Clone, Copy)]
pub(super) struct Of<'a, T> {
    pub heading: &'a str,
    pub of: T,
}

/// The tables for which there are figures.
pub fn all(entries: &[Entry<'_>]) -> Vec<Table> {
    let tables = [
        detection(entries),
        confusion(entries),
        localisation(entries),
        types(entries),
        correction(entries),
        consensus(entries),
        confidence(entries),
        low_confidence(entries),
        cost(entries),
    ];
    let mut tables: Vec<Table> = tables.into_iter().flatten().collect();
    tables.extend(search::all(entries));
    // Of a recipe's cells a table of their own says it.
    if let [Entry { heading, health: Some(health), .. }] = entries
        && heading.is_empty()
    {
        let read = format!("Replies read, in % {}: {health}.", health::SHARES);
        tables.iter_mut().for_each(|table| table.notes.push(read.clone()));
    }
    tables
}

/// A table of all entries' rows, each under its entry's heading.
pub(super) fn table<'a, T: Copy, I: IntoIterator<Item = T>>(
    name: &'static str,
    title: &str,
    entries: &'a [Entry<'_>],
    rows: impl Fn(&'a NoteFigures) -> Option<I>,
) -> TableBuilder<Of<'a, T>> {
    let of_entry = |entry: &'a Entry<'_>| {
        let rows = rows(entry.notes).into_iter().flatten();
        rows.map(|of| Of { heading: &entry.heading, of })
    };
    Table::of(name, title, entries.iter().flat_map(of_entry))
        .grouped_by(|row| row.heading.to_owned())
}

/// What a share is of, the share, and of how many notes over all runs.
type Share<'a> = (&'static str, Option<&'a OverRuns>, usize);

fn shares<'a>(
    name: &'static str,
    title: &str,
    entries: &'a [Entry<'_>],
    rows: impl Fn(&'a NoteFigures) -> Option<Vec<Share<'a>>>,
) -> TableBuilder<Of<'a, Share<'a>>> {
    table(name, title, entries, rows)
        .text("", |row| row.of.0)
        .spread("share", |row| row.of.1)
        .number("of notes × runs", |row| row.of.2)
}

fn detection<'a>(entries: &'a [Entry<'_>]) -> Option<Table> {
    let rows = |notes: &'a NoteFigures| {
        let Detection { confusion, accuracy, accuracy_of_read, precision, recall, f1, .. } =
            notes.detection.as_ref()?;
        let errors = confusion.errors();
        let all = errors + confusion.sound();
        let read = all - confusion.unread();
        Some(vec![
            ("accuracy, unreadable labels count as wrong", Some(accuracy), all),
            (
                "accuracy of readable labels, as the published code counts",
                accuracy_of_read.as_ref(),
                read,
            ),
            ("precision", precision.as_ref(), confusion.flagged()),
            ("recall", recall.as_ref(), errors),
            ("F1", f1.as_ref(), all),
        ])
    };
    shares("detection", "Detection: does the note have an error?", entries, rows)
        .note("Mean ± sample standard deviation over n runs. Precision is over the notes that were flagged, recall over those with an error; an error whose label could not be read counts as missed.")
        .unless_empty()
}

fn confusion(entries: &[Entry<'_>]) -> Option<Table> {
    let rows = |notes: &NoteFigures| {
        let one = &notes.detection.as_ref()?.confusion;
        let errors = [one.true_positives, one.false_negatives, one.unread_positives];
        let sound = [one.false_positives, one.true_negatives, one.unread_negatives];
        Some([("error", errors), ("no error", sound)])
    };
    table("confusion", "Confusion matrix of detection", entries, rows)
        .text("gold", |row| row.of.0)
        .number("error", |row| row.of.1[0])
        .number("no error", |row| row.of.1[1])
        .number("unreadable or errored", |row| row.of.1[2])
        .note("Sums over the runs.")
        .unless_empty()
}

fn localisation<'a>(entries: &'a [Entry<'_>]) -> Option<Table> {
    let rows = |notes: &'a NoteFigures| {
        let (localisation, detection) = (notes.localisation.as_ref()?, notes.detection.as_ref()?);
        let errors = detection.confusion.errors();
        let all = errors + detection.confusion.sound();
        Some(vec![
            ("soft: the sentence most like the quoted words", Some(&localisation.accuracy), all),
            ("exact: quoted word for word", Some(&localisation.accuracy_exact), all),
            ("soft, notes with an error only", localisation.of_errors.as_ref(), errors),
        ])
    };
    shares("localisation", "Localisation: which sentence?", entries, rows)
        .note("A note without an error is right where the system says that no sentence is wrong; a place that could not be read is wrong, for which a submission has −1.")
        .unless_empty()
}

fn types(entries: &[Entry<'_>]) -> Option<Table> {
    table("types", "By error type", entries, |notes| Some(&notes.detection.as_ref()?.by_type))
        .text("type", |row| &row.of.kind)
        .number("notes", |row| row.of.n)
        .spread("detected", |row| &row.of.detected)
        .spread("located", |row| &row.of.located)
        .note("Shares of the notes of the type; located by similarity.")
        .unless_empty()
}

fn consensus<'a>(entries: &'a [Entry<'_>]) -> Option<Table> {
    let rows = |notes: &'a NoteFigures| {
        let stages = notes.consensus.iter();
        Some(stages.flat_map(|stage| stage.settled.iter().map(|one| (stage.stage, one))))
    };
    table("consensus", "Agreement and arbitration (MedGuards, Table 13)", entries, rows)
        .grouped_by(|row| match row.heading {
            "" => row.of.0.to_string(),
            heading => format!("{heading}, {}", row.of.0),
        })
        .text("settled by", |row| row.of.1.source.in_words())
        .number("notes × runs", |row| row.of.1.n)
        .number("share", |row| row.of.1.share)
        .number("right", |row| row.of.1.n_right)
        .number("wrong", |row| row.of.1.n - row.of.1.n_right)
        .number("share right", |row| row.of.1.accuracy)
        .note("Shares are of the notes that the stage saw. In localisation a note without an error is right where the stage says that no sentence is wrong; the stage sees it where detection was wrong.")
        .unless_empty()
}

fn confidence(entries: &[Entry<'_>]) -> Option<Table> {
    let rows = |notes: &NoteFigures| {
        let found = notes.confidence.as_ref()?;
        let n = Some(found.n_agreed);
        Some([("all", n, found.all), ("right", None, found.right), ("wrong", None, found.wrong)])
    };
    table("confidence", "Mean confidence of the detectors (MedGuards, Table 16)", entries, rows)
        .text("labels", |row| row.of.0)
        .number("notes × runs", |row| row.of.1)
        .number("first agent", |row| row.of.2.map(|means| means[0]))
        .number("second agent", |row| row.of.2.map(|means| means[1]))
        .note("Over the notes × runs on which both agreed.")
        .unless_empty()
}

fn low_confidence(entries: &[Entry<'_>]) -> Option<Table> {
    let title = "When both detectors have low confidence (MedGuards, Table 16)";
    table("low-confidence", title, entries, |notes| Some(&notes.confidence.as_ref()?.low))
        .text("both below", |row| format!("{:.2}", row.of.below))
        .number("notes × runs", |row| row.of.n)
        .number("agreed", |row| row.of.n_agreed)
        .number("share agreed", |row| share(row.of.n_agreed, row.of.n))
        .number("right", |row| row.of.n_right)
        .number("share right", |row| share(row.of.n_right, row.of.n))
        .note("Right: the final label, however it was settled.")
        .unless_empty()
}

fn cost(entries: &[Entry<'_>]) -> Option<Table> {
    table("cost", "Cost per note, by stage (MedGuards, Table 10)", entries, |notes| Some(&notes.stages))
        .text("stage", |row| &row.of.stage)
        .number("calls in all", |row| row.of.calls)
        .under("per note")
        .number("seconds", |row| Cell::Number(row.of.latency_seconds, 2))
        .number("prompt tokens", |row| Cell::Number(row.of.prompt_tokens, 1))
        .number("of these cached", |row| Cell::Number(row.of.cached_tokens, 1))
        .number("completion tokens", |row| Cell::Number(row.of.completion_tokens, 1))
        .number("dollars", |row| Cell::Number(row.of.price(), 6))
        .note(format!(
            "Means over all notes × runs, including those that a stage did not see. Of calls that run in parallel the longest counts in seconds. Prices per million tokens: ${PROMPT_PRICE} prompt, ${COMPLETION_PRICE} completion, ${CACHED_PRICE} cached, MedGuards' (Gemini 2.0 Flash); not what this run's models cost."
        ))
        .unless_empty()
}
