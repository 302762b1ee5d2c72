//! The figures of a recipe: charts of its tables, lines over its methods, and a diagram of each cell's confidence.

use crate::analysis::notes;
use crate::analysis::recipe::notes::correction;
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::analysis::recipe::tables;
use crate::analysis::table::Table;
use crate::experiment::recipe::file::{Analysis, DatasetEntry};
use crate::experiment::recipe::{NoteColumn, Recipe};
use crate::report::calibration;
use crate::report::figure::{Chart, Drawing, Drawn, Key, Line, Plane, Point, Subplot};

const CHARTS: [Chart; 8] = [
    Chart {
        table: "accuracy",
        title: "",
        description: "Accuracy by method: a bar to the mean over the runs, a line of one standard deviation to either side.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "ours", "ours: mean ± standard deviation over runs")],
    },
    Chart {
        table: "notes",
        title: "",
        description: "Accuracy by method, over all notes: of detection, and of localisation by similarity.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(0, "detection", "detection"),
            Drawn(1, "localisation", "localisation by similarity"),
        ],
    },
    Chart {
        table: "consensus",
        title: "",
        description: "The share of the notes that a stage saw, by who settled it: agreement, or a third agent.",
        reach: &[0.0, 1.0],
        lanes: &[Drawn(0, "share", "")],
    },
    Chart {
        table: "netgain",
        title: "",
        description: "NetGain by method: a dot at the mean, a line over its 95 % interval.",
        reach: &[0.0],
        lanes: &[
            Drawn(
                0,
                "of those that could turn: ours",
                "of the questions that could turn, with its 95 % interval",
            ),
            Drawn(1, "of all questions: ours", "of all questions"),
        ],
    },
    Chart {
        table: "paired",
        title: "",
        description: "Differences of accuracy, paired by question: a dot at the mean, a line over its 95 % interval.",
        reach: &[0.0],
        lanes: &[Drawn(0, "ours", "ours, with its 95 % interval")],
    },
    Chart {
        table: "collapse",
        title: "Similarity",
        description: "Similarity of texts before any interaction, in the first round of it and in the last, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(2, "similarity: initial", "before any interaction"),
            Drawn(1, "similarity: first round", "first round of interaction"),
            Drawn(0, "similarity: last round", "last round"),
        ],
    },
    Chart {
        table: "collapse",
        title: "Correlated errors",
        description: "Shares of questions on which all first answers agree, agree and are wrong, and on which all last answers agree and are wrong, with one standard deviation over the runs.",
        reach: &[0.0, 1.0],
        lanes: &[
            Drawn(2, "correlated errors: Agreement@0", "Agreement@0"),
            Drawn(1, "correlated errors: Same-wrong@0", "Same-wrong@0"),
            Drawn(4, "correlated errors: Same-wrong@final", "Same-wrong@final"),
        ],
    },
    Chart {
        table: "cost",
        title: "",
        description: "Completion tokens that an item takes, and that a right answer takes.",
        reach: &[0.0],
        lanes: &[
            Drawn(0, "per item: completion tokens", "completion tokens per item"),
            Drawn(1, "per right answer: completion tokens", "completion tokens per right answer"),
        ],
    },
];

/// The figures that stand with a table.
pub fn panels(table: &Table, recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let mut panels = match table.name {
        "accuracy" | "notes" if recipe.analyses.contains(&Analysis::Sweep) => {
            sweeps(table.name, recipe, results)
        }
        "calibration" => calibration(recipe, results),
        _ => Vec::new(),
    };
    let charts = CHARTS.iter().filter(|chart| chart.table == table.name);
    panels.extend(charts.filter_map(|chart| chart.of(table)));
    panels
}

/// What a cell has of a line: a mean and, over several runs or notes, its deviation.
type Value = fn(&Recipe, &CellResult) -> Option<(f64, Option<f64>)>;

fn corrected(recipe: &Recipe, cell: &CellResult, column: NoteColumn) -> Option<(f64, Option<f64>)> {
    let over = &correction(recipe, cell, column)?.composite;
    Some((over.mean, over.std))
}

fn search(cell: &CellResult) -> Option<&notes::SearchFigures> {
    cell.notes.as_ref()?.search.as_ref()
}

fn pair(of: notes::Spread) -> (f64, Option<f64>) {
    (of.mean, of.std)
}

/// Figures over the methods in their order, each with its axis and its lines: accuracy; on notes corrections, then turns and time of
/// systems that search (MedReAct'N'MedReFlex, Figures 2 to 6).
fn sweeps(table: &str, recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let accuracy: &[(&str, Value)] = &[("accuracy", |_, cell| Some((cell.mean?, cell.std)))];
    let corrections: &[(&str, Value)] = &[
        ("ROUGE-1", |recipe, cell| corrected(recipe, cell, NoteColumn::Rouge1)),
        ("BERTScore", |recipe, cell| corrected(recipe, cell, NoteColumn::BertScore)),
        ("BLEURT", |recipe, cell| corrected(recipe, cell, NoteColumn::Bleurt)),
        ("AggregateScore", |recipe, cell| corrected(recipe, cell, NoteColumn::Aggregate)),
    ];
    let turns: &[(&str, Value)] = &[
        ("MedReFlex turns", |_, cell| Some(pair(search(cell)?.turns))),
        ("MedReAct steps", |_, cell| Some(pair(search(cell)?.steps))),
    ];
    let seconds: &[(&str, Value)] = &[
        ("all steps", |_, cell| Some(pair(search(cell)?.seconds_a_step))),
        ("steps that search", |_, cell| Some(pair(search(cell)?.seconds_a_searching_step))),
    ];
    let figures = match table {
        "accuracy" => vec![("In the order of the methods", "accuracy", accuracy)],
        _ => vec![
            ("Correction, over all notes", "score", corrections),
            ("Turns and steps a note", "number", turns),
            ("Time of a step", "seconds", seconds),
        ],
    };
    let drawn =
        figures.into_iter().map(|(title, up, lines)| sweep(recipe, results, title, up, lines));
    drawn.filter(|one| !one.drawings.is_empty()).collect()
}

/// A drawing for each dataset that has a value.
fn sweep(
    recipe: &Recipe,
    results: &RecipeResults,
    title: &str,
    up: &str,
    of: &[(&str, Value)],
) -> Subplot {
    let drawing = |dataset: &DatasetEntry| {
        let line = |(series, (_, value)): (usize, &(&str, Value))| {
            let methods = recipe.method.iter().enumerate();
            let points = methods.filter_map(|(place, method)| {
                let cell = tables::cell(results, &method.name, &dataset.name)?;
                let (y, std) = value(recipe, cell)?;
                // A little beside each other, so that none covers another.
                let x = place as f64 + 0.06 * (series as f64 - (of.len() - 1) as f64 / 2.0);
                Some(Point { x, y, std, radius: 3.5 })
            });
            Line { series, points: points.collect() }
        };
        let lines: Vec<Line> = of.iter().enumerate().map(line).collect();
        let has_points = lines.iter().any(|line| !line.points.is_empty());
        has_points.then(|| {
            Plane {
                title: dataset.label.clone(),
                description: format!("{title} by method, with one standard deviation to either side where there is one."),
                width: (64 + 92 * recipe.method.len().max(3)) as u32,
                height: 280,
                across: "method".to_owned(),
                up: up.to_owned(),
                names: recipe.method.iter().map(|one| one.label.clone()).collect(),
                lines,
                ..Plane::default()
            }
            .draw()
        })
    };
    let has = |value: &Value| results.cells.iter().any(|cell| value(recipe, cell).is_some());
    let named = of.iter().enumerate().filter(|(_, (_, value))| has(value));
    Subplot {
        title: title.to_owned(),
        drawings: recipe.dataset.iter().filter_map(drawing).collect(),
        key: named.map(|(series, (label, _))| Key::series(series, label)).collect(),
    }
}

/// A reliability diagram for each cell, by dataset.
fn calibration(recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    let panels = recipe.dataset.iter().map(|dataset| {
        let cells = results.cells.iter().filter(|cell| cell.dataset == dataset.name);
        let drawings: Vec<Drawing> = cells
            .filter_map(|cell| {
                let label = tables::method(recipe, &cell.method);
                Some(calibration::drawing(label, cell.calibration.as_ref()?))
            })
            .collect();
        Subplot { title: dataset.label.clone(), drawings, key: Vec::new() }
    });
    panels.filter(|panel| !panel.drawings.is_empty()).collect()
}
