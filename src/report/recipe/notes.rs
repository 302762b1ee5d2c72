//! The tables of a recipe on notes: the paper's columns, what one method gains over another, and how agents got there.

use super::tables::{dataset, method};
use crate::metrics::over_runs::OverRuns;
use crate::notes::{COLUMNS, NoteFigures};
use crate::recipe::Recipe;
use crate::recipe::improvement::ImprovementRow;
use crate::recipe::results::{CellResult, RecipeResults};
use crate::report::table::{Cell, Column, Kind, Row, Table};

/// Every table that has a row; none where the recipe is on questions.
pub fn all(recipe: &Recipe, results: &RecipeResults) -> Vec<Table> {
    let cells: Vec<(&CellResult, &NoteFigures)> = results
        .cells
        .iter()
        .filter_map(|cell| Some((cell, cell.notes.as_ref()?)))
        .collect();
    if cells.is_empty() {
        return Vec::new();
    }
    let mut tables = vec![figures(recipe, &cells)];
    tables.extend(improvements(recipe, results));
    tables.push(read(recipe, &cells));
    tables.extend(kpcs(recipe, &cells));
    tables.extend(consensus(recipe, &cells));
    tables.extend(confidence(recipe, &cells));
    tables.push(stages(recipe, &cells));
    tables
}

fn spread(over: Option<&OverRuns>) -> Cell {
    over.map_or(Cell::Nothing, |over| Cell::Spread {
        mean: over.mean,
        std: over.std,
        n: Some(over.per_run.len()),
        best: false,
    })
}

/// A cell's heading, and its label: a recipe does not know which models it runs.
fn names(recipe: &Recipe, cell: &CellResult) -> (String, Cell) {
    let group = dataset(recipe, &cell.dataset).to_owned();
    (group, Cell::text(full(recipe, cell)))
}

pub fn full(recipe: &Recipe, cell: &CellResult) -> String {
    format!(
        "{}: {}",
        cell.models.join(", "),
        method(recipe, &cell.method)
    )
}

/// The name of the stemmed or plain ROUGE-1 that the paper has for a dataset.
fn rouge1(recipe: &Recipe, cell: &CellResult) -> &'static str {
    let entry = recipe.dataset.iter().find(|one| one.name == cell.dataset);
    match entry.map(|one| one.format) {
        Some(crate::data::Format::Medec) => "rouge1_stemmed",
        _ => "rouge1",
    }
}

/// A column of a cell: over all notes, and over the corrected pairs alone.
fn column<'a>(
    recipe: &Recipe,
    (cell, notes): &(&'a CellResult, &'a NoteFigures),
    name: &str,
) -> (Option<&'a OverRuns>, Option<&'a OverRuns>) {
    let correction = notes.correction.as_ref();
    match name {
        "detection" => (notes.detection.as_ref().map(|one| &one.accuracy), None),
        "localisation" => (notes.localisation.as_ref().map(|one| &one.accuracy), None),
        "kpcs" => {
            let half = correction.and_then(|one| {
                let mut weights = one.kpcs.iter();
                weights.find(|one| one.alpha == crate::metrics::kpcs::ALPHA)
            });
            (
                half.map(|one| &one.eq9.composite),
                half.and_then(|one| one.eq9.subset.as_ref()),
            )
        }
        name => {
            let name = if name == "rouge1" {
                rouge1(recipe, cell)
            } else {
                name
            };
            let measured = correction.and_then(|one| one.measure(name));
            (
                measured.map(|one| &one.composite),
                measured.and_then(|one| one.subset.as_ref()),
            )
        }
    }
}

/// The paper's columns: ours, then its own rows.
fn figures(recipe: &Recipe, cells: &[(&CellResult, &NoteFigures)]) -> Table {
    let mut columns = vec![Column::new("method", Kind::Text)];
    for (name, label) in COLUMNS {
        match name {
            "detection" | "localisation" => columns.push(Column::new(label, Kind::Spread)),
            _ => {
                columns.push(Column::under(label, "pairs", Kind::Spread));
                columns.push(Column::under(label, "all notes", Kind::Spread));
            }
        }
    }
    let ours = |entry: &(&CellResult, &NoteFigures)| {
        let (group, label) = names(recipe, entry.0);
        let mut row = vec![label];
        for (name, _) in COLUMNS {
            let (all, pairs) = column(recipe, entry, name);
            match name {
                "detection" | "localisation" => row.push(spread(all)),
                _ => row.extend([spread(pairs), spread(all)]),
            }
        }
        Row { group, cells: row }
    };
    let mut rows = Vec::new();
    for entry in &recipe.dataset {
        rows.extend(
            cells
                .iter()
                .filter(|(cell, _)| cell.dataset == entry.name)
                .map(ours),
        );
        for published in &recipe.published {
            let Some(figures) = published.figures.get(&entry.name) else {
                continue;
            };
            let mut row = vec![Cell::text(format!("paper: {}", published.label))];
            for (name, _) in COLUMNS {
                let figure = Cell::share(figures.get(name).copied());
                match name {
                    "detection" | "localisation" => row.push(figure),
                    _ => row.extend([figure, Cell::Nothing]),
                }
            }
            let group = entry.label.clone();
            rows.push(Row { group, cells: row });
        }
    }
    let mut notes = vec![
        "Pairs: the mean over notes that the gold and the system both correct. All notes: 1 where neither corrects, 0 where one does. The paper says that it counts the latter; its figures look like the former, and stand there.".to_owned(),
    ];
    let has = |name: &str| {
        cells
            .iter()
            .any(|entry| column(recipe, entry, name).0.is_some())
    };
    if !(has("bertscore") && has("bleurt")) {
        notes.push(NO_WEIGHTS.to_owned());
    }
    for (cell, _) in cells.iter().filter(|(cell, _)| cell.n_errors > 0) {
        let (group, label) = names(recipe, cell);
        notes.push(format!(
            "{} on {group}: {} errored, and count as wrong.",
            label.shown(),
            cell.n_errors
        ));
    }
    Table {
        name: "notes",
        title: "Detection, localisation, correction".to_owned(),
        columns,
        rows,
        notes,
    }
}

/// What is said where weights of metrics are missing.
pub const NO_WEIGHTS: &str = "BERTScore, BLEURT and what is made of them (AggregateScore, KPCS) were not computed wherever a dash stands: give the folder of their weights with --scorers DIR.";

fn improvements(recipe: &Recipe, results: &RecipeResults) -> Option<Table> {
    let rows = &results.improvements;
    let full = |name: &str, dataset: &str| {
        let cell = super::tables::cell(results, name, dataset);
        cell.map_or(name.to_owned(), |cell| full(recipe, cell))
    };
    let row = |row: &ImprovementRow| Row {
        group: dataset(recipe, &row.dataset).to_owned(),
        cells: vec![
            Cell::text(format!(
                "{} against {}",
                full(&row.method, &row.dataset),
                full(&row.baseline, &row.dataset)
            )),
            Cell::share(Some(row.average[0])),
            Cell::share(Some(row.average[1])),
            row.delta_percent
                .map_or(Cell::Nothing, |delta| Cell::text(format!("{delta:+.1} %"))),
            Cell::Interval {
                mean: row.difference.mean,
                low: row.difference.low,
                high: row.difference.high,
            },
            row.paired_t.map_or(Cell::Nothing, |test| {
                Cell::text(format!("{:.2e}", test.p_value))
            }),
            Cell::text(format!("{:.2e}", row.bootstrap_p)),
            Cell::text(row.columns.join(", ")),
        ],
    };
    (!rows.is_empty()).then(|| Table {
        name: "improvements",
        title: "What guarding gains".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("average", Kind::Number),
            Column::new("its baseline's", Kind::Number),
            Column::new("Δ%", Kind::Text),
            Column::new("difference by note", Kind::Interval),
            Column::under("P-value", "paired t over columns", Kind::Text),
            Column::under("P-value", "bootstrap over notes", Kind::Text),
            Column::new("columns", Kind::Text),
        ],
        rows: rows.iter().map(row).collect(),
        notes: vec![
            "Averages over the columns named at the end, corrections over all notes. Δ% is their sum over the baseline's, less 1. Both P-values are two-sided.".to_owned(),
        ],
    })
}

/// What detection and localisation hide: unread answers, exact sentences, precision and recall.
fn read(recipe: &Recipe, cells: &[(&CellResult, &NoteFigures)]) -> Table {
    let row = |(cell, notes): &(&CellResult, &NoteFigures)| {
        let (group, label) = names(recipe, cell);
        let detection = notes.detection.as_ref();
        let unread =
            detection.map(|one| one.confusion.unread_positives + one.confusion.unread_negatives);
        let localisation = notes.localisation.as_ref();
        let correction = notes.correction.as_ref();
        let pairs = correction.map(|one| one.n_pairs.iter().sum());
        Row {
            group,
            cells: vec![
                label,
                spread(detection.and_then(|one| one.precision.as_ref())),
                spread(detection.and_then(|one| one.recall.as_ref())),
                spread(detection.and_then(|one| one.f1.as_ref())),
                unread.map_or(Cell::Nothing, Cell::Count),
                spread(detection.and_then(|one| one.accuracy_of_read.as_ref())),
                spread(localisation.map(|one| &one.accuracy)),
                spread(localisation.map(|one| &one.accuracy_exact)),
                spread(localisation.and_then(|one| one.of_errors.as_ref())),
                pairs.map_or(Cell::Nothing, Cell::Count),
            ],
        }
    };
    let spread = |over: &str, label: &str| Column::under(over, label, Kind::Spread);
    Table {
        name: "detection",
        title: "Detection and localisation more closely".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            spread("detection", "precision"),
            spread("detection", "recall"),
            spread("detection", "F1"),
            Column::under("detection", "unread", Kind::Number),
            spread("detection", "accuracy of the read"),
            spread("localisation", "by likeness"),
            spread("localisation", "to the letter"),
            spread("localisation", "of errors"),
            Column::new("corrected pairs", Kind::Number),
        ],
        rows: cells.iter().map(row).collect(),
        notes: vec![
            "Unread: flags that could not be read, over all runs; they count as wrong everywhere but in the accuracy of the read, which is the published code's. To the letter: the sentence that the system quotes or numbers must be the note's.".to_owned(),
        ],
    }
}

fn kpcs(recipe: &Recipe, cells: &[(&CellResult, &NoteFigures)]) -> Option<Table> {
    let rows = cells.iter().flat_map(|(cell, notes)| {
        let weights = notes.correction.iter().flat_map(|one| &one.kpcs);
        weights.map(|one| {
            let (group, label) = names(recipe, cell);
            Row {
                group,
                cells: vec![
                    label,
                    Cell::Number(one.alpha, 1),
                    spread(one.eq9.subset.as_ref()),
                    spread(Some(&one.eq9.composite)),
                    spread(one.gated.subset.as_ref()),
                    spread(Some(&one.gated.composite)),
                ],
            }
        })
    });
    let rows: Vec<Row> = rows.collect();
    (!rows.is_empty()).then(|| Table {
        name: "kpcs",
        title: "Keyword-Prioritized Correction Score".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("α", Kind::Number),
            Column::under("Eq. 9", "pairs", Kind::Spread),
            Column::under("Eq. 9", "all notes", Kind::Spread),
            Column::under("published code", "pairs", Kind::Spread),
            Column::under("published code", "all notes", Kind::Spread),
        ],
        rows,
        notes: Vec::new(),
    })
}

fn consensus(recipe: &Recipe, cells: &[(&CellResult, &NoteFigures)]) -> Option<Table> {
    let rows = cells.iter().flat_map(|(cell, notes)| {
        notes.consensus.iter().flat_map(|stage| {
            stage.settled.iter().map(|settled| {
                let (group, label) = names(recipe, cell);
                Row {
                    group,
                    cells: vec![
                        label,
                        Cell::text(&stage.stage),
                        Cell::text(settled.source.in_words()),
                        Cell::Count(settled.n),
                        Cell::share(Some(settled.share)),
                        Cell::Count(settled.n_right),
                        Cell::share(Some(settled.accuracy)),
                        Cell::Count(settled.n - settled.n_right),
                        Cell::share(Some(1.0 - settled.accuracy)),
                    ],
                }
            })
        })
    });
    let rows: Vec<Row> = rows.collect();
    (!rows.is_empty()).then(|| Table {
        name: "consensus",
        title: "Agreement and arbitration".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("stage", Kind::Text),
            Column::new("settled by", Kind::Text),
            Column::new("notes", Kind::Number),
            Column::new("share", Kind::Number),
            Column::new("right", Kind::Number),
            Column::new("accuracy", Kind::Number),
            Column::new("wrong", Kind::Number),
            Column::new("error rate", Kind::Number),
        ],
        rows,
        notes: vec!["Over all runs. Localisation sees the notes that detection flags.".to_owned()],
    })
}

fn confidence(recipe: &Recipe, cells: &[(&CellResult, &NoteFigures)]) -> Option<Table> {
    let rows = cells.iter().filter_map(|(cell, notes)| {
        let found = notes.confidence.as_ref()?;
        let (group, label) = names(recipe, cell);
        let pair = |pair: Option<[f64; 2]>| {
            [0, 1].map(|agent| {
                pair.map_or(Cell::Nothing, |pair| Cell::Number(100.0 * pair[agent], 1))
            })
        };
        let low = found.low.iter().map(|low| {
            Cell::text(format!(
                "{}: {} agree, {} right",
                low.n, low.n_agreed, low.n_right
            ))
        });
        let cells = [label, Cell::Count(found.n_agreed)]
            .into_iter()
            .chain(pair(found.all))
            .chain(pair(found.right))
            .chain(pair(found.wrong))
            .chain(low);
        Some(Row {
            group,
            cells: cells.collect(),
        })
    });
    let rows: Vec<Row> = rows.collect();
    let mut columns = vec![
        Column::new("method", Kind::Text),
        Column::new("agreed", Kind::Number),
    ];
    for over in ["all agreed", "right", "wrong"] {
        for agent in ["agent 1", "agent 2"] {
            columns.push(Column::under(over, agent, Kind::Number));
        }
    }
    for below in ["90", "85", "80"] {
        columns.push(Column::under("both below", below, Kind::Text));
    }
    (!rows.is_empty()).then(|| Table {
        name: "confidence",
        title: "Confidence of the detectors".to_owned(),
        columns,
        rows,
        notes: vec!["Means on notes on which both agree, of 100, over all runs; then notes on which both are less sure.".to_owned()],
    })
}

fn stages(recipe: &Recipe, cells: &[(&CellResult, &NoteFigures)]) -> Table {
    let rows = cells.iter().flat_map(|(cell, notes)| {
        notes.stages.iter().map(|stage| {
            let (group, label) = names(recipe, cell);
            Row {
                group,
                cells: vec![
                    label,
                    Cell::text(&stage.stage),
                    Cell::Count(stage.calls),
                    Cell::Number(stage.latency_seconds, 2),
                    Cell::Number(stage.prompt_tokens, 0),
                    Cell::Number(stage.cached_tokens, 0),
                    Cell::Number(stage.completion_tokens, 0),
                    Cell::Number(1000.0 * stage.price(&Default::default()), 3),
                ],
            }
        })
    });
    Table {
        name: "stages",
        title: "Cost by stage".to_owned(),
        columns: vec![
            Column::new("method", Kind::Text),
            Column::new("stage", Kind::Text),
            Column::new("calls", Kind::Number),
            Column::under("per note", "seconds", Kind::Number),
            Column::under("per note", "tokens in", Kind::Number),
            Column::under("per note", "cached", Kind::Number),
            Column::under("per note", "tokens out", Kind::Number),
            Column::under("per note", "$ / 1000", Kind::Number),
        ],
        rows: rows.collect(),
        notes: vec![
            "Means over all notes, those that a stage did not see too. Dollars for a thousand notes at the paper's prices for a million tokens: 0.10 in, 0.025 cached, 0.40 out.".to_owned(),
        ],
    }
}
