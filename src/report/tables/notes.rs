//! The tables of notes, for one run or for each cell of a recipe: detection, localisation, error types, correction, consensus, confidence,
//! cost.

use super::correction::correction;
use crate::analysis::metrics::over_runs::OverRuns;
use crate::analysis::notes::{NoteFigures, Prices};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// Figures, and what their rows are headed by; empty for a run alone.
pub struct Entry<'a> {
    pub heading: String,
    pub notes: &'a NoteFigures,
}

/// Rows of one entry: a heading of their own, which may be empty, and cells.
pub(super) type Rows = Vec<(String, Vec<Cell>)>;

/// Those that there are figures for.
pub fn all(entries: &[Entry<'_>], prices: &Prices) -> Vec<Table> {
    let kinds = [
        detection,
        confusion,
        localisation,
        types,
        correction,
        consensus,
        confidence,
        low_confidence,
    ];
    let tables = kinds.iter().filter_map(|kind| kind(entries).unless_empty());
    tables.chain(cost(entries, prices).unless_empty()).collect()
}

pub(super) fn rows(entries: &[Entry<'_>], of: impl Fn(&NoteFigures) -> Option<Rows>) -> Vec<Row> {
    let of_entry = |entry: &Entry<'_>| {
        let rows = of(entry.notes).unwrap_or_default().into_iter();
        let headed = rows.map(|(own, cells)| {
            let parts = [entry.heading.as_str(), &own];
            let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
            let group = parts.join(", ");
            Row { group, cells }
        });
        headed.collect::<Vec<_>>()
    };
    entries.iter().flat_map(of_entry).collect()
}

pub(super) fn row(
    label: impl Into<String>,
    cells: impl IntoIterator<Item = Cell>,
) -> (String, Vec<Cell>) {
    let cells = [Cell::text(label)].into_iter().chain(cells);
    (String::new(), cells.collect())
}

pub(super) fn table(
    name: &'static str,
    title: &str,
    columns: Vec<Column>,
    rows: Vec<Row>,
    note: &str,
) -> Table {
    let notes = [note].into_iter().filter(|note| !note.is_empty());
    Table {
        name,
        title: title.to_owned(),
        columns,
        rows,
        notes: notes.map(str::to_owned).collect(),
    }
}

/// A column of words, then columns of numbers.
fn columns(first: &str, numbers: &[&str]) -> Vec<Column> {
    let numbers = numbers.iter().map(|label| Column::new(*label, Kind::Number));
    [Column::new(first, Kind::Text)].into_iter().chain(numbers).collect()
}

fn share_columns() -> Vec<Column> {
    vec![
        Column::new("", Kind::Text),
        Column::new("share", Kind::Spread),
        Column::new("of notes × runs", Kind::Number),
    ]
}

fn share(label: &str, figure: Option<&OverRuns>, of: usize) -> (String, Vec<Cell>) {
    row(label, [Cell::over_runs(figure), Cell::Count(of)])
}

fn detection(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let detection = notes.detection.as_ref()?;
        let confusion = &detection.confusion;
        let errors = confusion.errors();
        let all = errors + confusion.sound();
        Some(vec![
            share("accuracy, unreadable labels count as wrong", Some(&detection.accuracy), all),
            share(
                "accuracy of readable labels, as the published code counts",
                detection.accuracy_of_read.as_ref(),
                all - confusion.unread(),
            ),
            share("precision", detection.precision.as_ref(), confusion.flagged()),
            share("recall", detection.recall.as_ref(), errors),
            share("F1", detection.f1.as_ref(), all),
        ])
    };
    table(
        "detection",
        "Detection: does the note have an error?",
        share_columns(),
        rows(entries, of),
        "Mean ± sample standard deviation over n runs. Precision is over the notes that were flagged, recall over those with an error; an error whose label could not be read counts as missed.",
    )
}

fn confusion(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let confusion = &notes.detection.as_ref()?.confusion;
        let errors =
            [confusion.true_positives, confusion.false_negatives, confusion.unread_positives];
        let sound =
            [confusion.false_positives, confusion.true_negatives, confusion.unread_negatives];
        Some(vec![row("error", errors.map(Cell::Count)), row("no error", sound.map(Cell::Count))])
    };
    table(
        "confusion",
        "Confusion matrix of detection",
        columns("gold", &["error", "no error", "unreadable or errored"]),
        rows(entries, of),
        "Sums over the runs.",
    )
}

fn localisation(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let (localisation, detection) = (notes.localisation.as_ref()?, notes.detection.as_ref()?);
        let errors = detection.confusion.errors();
        let all = errors + detection.confusion.sound();
        Some(vec![
            share(
                "soft: the sentence most similar to the quoted words",
                Some(&localisation.accuracy),
                all,
            ),
            share("exact: quoted word for word", Some(&localisation.accuracy_exact), all),
            share("soft, notes with an error only", localisation.of_errors.as_ref(), errors),
        ])
    };
    table(
        "localisation",
        "Localisation: which sentence?",
        share_columns(),
        rows(entries, of),
        "A note without an error is right where no sentence was named.",
    )
}

fn types(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let types = notes.detection.as_ref()?.by_type.iter();
        let rows = types.map(|one| {
            let shares = [&one.detected, &one.located].map(|share| Cell::over_runs(Some(share)));
            row(&one.kind, [Cell::Count(one.n)].into_iter().chain(shares))
        });
        Some(rows.collect())
    };
    let columns = vec![
        Column::new("type", Kind::Text),
        Column::new("notes", Kind::Number),
        Column::new("detected", Kind::Spread),
        Column::new("located", Kind::Spread),
    ];
    let note = "Shares of the notes of the type; located by similarity.";
    table("types", "By error type", columns, rows(entries, of), note)
}

fn consensus(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let settled = notes.consensus.iter().flat_map(|stage| {
            stage.settled.iter().map(|settled| {
                let cells = vec![
                    Cell::text(settled.source.in_words()),
                    Cell::Count(settled.n),
                    Cell::share(Some(settled.share)),
                    Cell::Count(settled.n_right),
                    Cell::Count(settled.n_wrong()),
                    Cell::share(Some(settled.accuracy)),
                ];
                (stage.stage.to_string(), cells)
            })
        });
        Some(settled.collect())
    };
    table(
        "consensus",
        "Agreement and arbitration (Table 13)",
        columns("settled by", &["notes × runs", "share", "right", "wrong", "share right"]),
        rows(entries, of),
        "Shares are of the notes that the stage saw. In localisation a note without an error has no right sentence; the stage sees it where detection was wrong.",
    )
}

fn confidence(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let found = notes.confidence.as_ref()?;
        let means = |label: &str, n: Cell, means: Option<[f64; 2]>| {
            let means = [0, 1].map(|agent| Cell::share(means.map(|pair| pair[agent])));
            row(label, [n].into_iter().chain(means))
        };
        Some(vec![
            means("all", Cell::Count(found.n_agreed), found.all),
            means("right", Cell::Nothing, found.right),
            means("wrong", Cell::Nothing, found.wrong),
        ])
    };
    table(
        "confidence",
        "Mean confidence of the detectors (Table 16)",
        columns("labels", &["notes × runs", "first agent", "second agent"]),
        rows(entries, of),
        "Over the notes × runs on which both agreed.",
    )
}

fn low_confidence(entries: &[Entry<'_>]) -> Table {
    let of = |notes: &NoteFigures| {
        let low = notes.confidence.as_ref()?.low.iter();
        let rows = low.map(|low| {
            let share = |part: usize| (low.n > 0).then(|| part as f64 / low.n as f64);
            let cells = [
                Cell::Count(low.n),
                Cell::Count(low.n_agreed),
                Cell::share(share(low.n_agreed)),
                Cell::Count(low.n_right),
                Cell::share(share(low.n_right)),
            ];
            row(format!("{:.2}", low.below), cells)
        });
        Some(rows.collect())
    };
    table(
        "low-confidence",
        "When both detectors have low confidence (Table 16)",
        columns("both below", &["notes × runs", "agreed", "share agreed", "right", "share right"]),
        rows(entries, of),
        "Right: the final label, however it was settled.",
    )
}

fn cost(entries: &[Entry<'_>], prices: &Prices) -> Table {
    let of = |notes: &NoteFigures| {
        let rows = notes.stages.iter().map(|stage| {
            let cells = [
                Cell::Count(stage.calls),
                Cell::Number(stage.latency_seconds, 2),
                Cell::Number(stage.prompt_tokens, 1),
                Cell::Number(stage.cached_tokens, 1),
                Cell::Number(stage.completion_tokens, 1),
                Cell::Number(stage.price(prices), 6),
            ];
            row(&stage.stage, cells)
        });
        Some(rows.collect())
    };
    let per_note = ["seconds", "prompt tokens", "of these cached", "completion tokens", "dollars"];
    let per_note = per_note.map(|label| Column::under("per note", label, Kind::Number));
    let mut columns = columns("stage", &["calls in all"]);
    columns.extend(per_note);
    let whose = match *prices == Prices::default() {
        true => ", the paper's (Gemini 2.0 Flash)",
        false => "",
    };
    let Prices { prompt, completion, cached } = *prices;
    let note = format!(
        "Means over all notes × runs, including those that a stage did not see. Of calls that run in parallel the longest counts in seconds. Prices per million tokens: ${prompt} prompt, ${completion} completion, ${cached} cached{whose}; not what this run's models cost."
    );
    table("cost", "Cost per note, by stage (Table 10)", columns, rows(entries, of), &note)
}
