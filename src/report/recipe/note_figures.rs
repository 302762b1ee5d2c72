//! The figures of a recipe on notes: the columns that need no weights, and who settled each stage (MedGuards, Figures 2 to 6).

use crate::analysis::notes::{Consensus, NoteFigures, Settled, Spread};
use crate::analysis::recipe::notes::{correction, full};
use crate::analysis::recipe::results::{CellResult, RecipeResults};
use crate::analysis::recipe::tables;
use crate::experiment::recipe::file::{Analysis, DatasetEntry};
use crate::experiment::recipe::{NoteColumn, Recipe};
use crate::record::SettledBy;
use crate::report::figure::{Drawing, Key, Lane, Line, Plane, Point, Row, Subplot};
use crate::report::recipe::figures::{Figure, beside, cells, over_methods};

/// With the rows of every cell on notes.
fn of_notes(
    figure: Figure<'_>,
    recipe: &Recipe,
    results: &RecipeResults,
    rows: impl Fn(&CellResult, &NoteFigures) -> Vec<Row>,
) -> Subplot {
    let rows_of = |cell: &CellResult| Some(rows(cell, cell.notes.as_ref()?));
    figure.panel(recipe, |dataset| cells(results, dataset).filter_map(rows_of).flatten().collect())
}

/// Detection, localisation by similarity and word for word: bars to the mean over the runs.
pub fn accuracy(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let row = |cell: &CellResult, notes: &NoteFigures| {
        let localisation = notes.localisation.as_ref();
        let lanes = [
            notes.detection.as_ref().map(|one| Lane::over_runs(0, &one.accuracy)),
            localisation.map(|one| Lane::over_runs(1, &one.accuracy)),
            localisation.map(|one| Lane::over_runs(2, &one.accuracy_exact)),
        ];
        vec![Row { label: full(recipe, cell), lanes: lanes.into_iter().flatten().collect() }]
    };
    let figure = Figure {
        title: "",
        description: "Accuracy by method, over all notes: of detection, of localisation by similarity, of localisation word for word.",
        reach: &[0.0, 1.0],
        key: vec![
            Key::series(0, "detection"),
            Key::series(1, "localisation by similarity"),
            Key::series(2, "localisation word for word"),
        ],
    };
    of_notes(figure, recipe, results, row)
}

/// Corrections over the methods in their order, one line per metric; then turns and time of systems that search (MedReAct'N'MedReFlex,
/// Figures 2 to 6). None for a recipe that is no sweep.
pub fn sweeps(recipe: &Recipe, results: &RecipeResults) -> Vec<Subplot> {
    if !recipe.analyses.contains(&Analysis::Sweep) {
        return Vec::new();
    }
    let metric = |column: NoteColumn| Curve {
        label: column.label(),
        value: Box::new(move |cell: &CellResult| {
            let over = &correction(recipe, cell, column)?.composite;
            Some((over.mean, over.std))
        }),
    };
    let metrics =
        [NoteColumn::Rouge1, NoteColumn::BertScore, NoteColumn::Bleurt, NoteColumn::Aggregate];
    let search = |cell: &CellResult| cell.notes.as_ref()?.search.clone();
    let spread = |spread: Spread| Some((spread.mean, spread.std));
    let turns = [
        Curve {
            label: "MedReFlex turns",
            value: Box::new(move |cell| spread(search(cell)?.turns)),
        },
        Curve { label: "MedReAct steps", value: Box::new(move |cell| spread(search(cell)?.steps)) },
    ];
    let seconds = [
        Curve {
            label: "all steps",
            value: Box::new(move |cell| spread(search(cell)?.seconds_a_step)),
        },
        Curve {
            label: "steps that search",
            value: Box::new(move |cell| spread(search(cell)?.seconds_a_searching_step)),
        },
    ];
    [
        curves(recipe, results, ["Correction, over all notes", "score"], &metrics.map(metric)),
        curves(recipe, results, ["Turns and steps a note", "number"], &turns),
        curves(recipe, results, ["Time of a step", "seconds"], &seconds),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A cell's mean and, over several runs or notes, its deviation.
type Value<'a> = dyn Fn(&CellResult) -> Option<(f64, Option<f64>)> + 'a;

/// A line of a sweep.
struct Curve<'a> {
    label: &'static str,
    value: Box<Value<'a>>,
}

/// One drawing per dataset, one line per curve; `None` where no cell has a value.
fn curves(
    recipe: &Recipe,
    results: &RecipeResults,
    [title, up]: [&str; 2],
    curves: &[Curve<'_>],
) -> Option<Subplot> {
    let drawing = |dataset: &DatasetEntry| {
        let line = |(series, curve): (usize, &Curve<'_>)| {
            let methods = recipe.method.iter().enumerate();
            let points = methods.filter_map(|(place, method)| {
                let cell = tables::cell(results, &method.name, &dataset.name)?;
                let (y, std) = (curve.value)(cell)?;
                let x = beside(place, series, curves.len());
                Some(Point { x, y, std, radius: 3.5 })
            });
            Line { series, points: points.collect() }
        };
        let lines: Vec<Line> = curves.iter().enumerate().map(line).collect();
        lines.iter().any(|line| !line.points.is_empty()).then(|| {
            Plane {
                title: dataset.label.clone(),
                description: format!("{title} by method, with one standard deviation to either side where there is one."),
                up: up.to_owned(),
                ..over_methods(recipe, lines)
            }
            .draw()
        })
    };
    let drawings: Vec<Drawing> = recipe.dataset.iter().filter_map(drawing).collect();
    let has = |curve: &&Curve<'_>| results.cells.iter().any(|cell| (curve.value)(cell).is_some());
    let named = curves.iter().enumerate().filter(|(_, curve)| has(curve));
    let key = named.map(|(series, curve)| Key::series(series, curve.label)).collect();
    (!drawings.is_empty()).then(|| Subplot { title: title.to_owned(), drawings, key })
}

/// The share of notes that each way of settling a stage took.
pub fn consensus(recipe: &Recipe, results: &RecipeResults) -> Subplot {
    let rows = |cell: &CellResult, notes: &NoteFigures| {
        let stage = |stage: &Consensus| {
            let lane = |settled: &Settled| {
                let mut lane = Lane::bar(settled.source as usize, settled.share);
                lane.said = format!("{} {:.4}", settled.source.in_words(), settled.share);
                lane
            };
            Row {
                label: format!("{}, {}", full(recipe, cell), stage.stage),
                lanes: stage.settled.iter().map(lane).collect(),
            }
        };
        notes.consensus.iter().map(stage).collect()
    };
    let used = |source: &SettledBy| {
        let cells = results.cells.iter().filter_map(|cell| cell.notes.as_ref());
        let mut stages = cells.flat_map(|notes| &notes.consensus);
        stages.any(|stage| stage.settled.iter().any(|one| one.source == *source))
    };
    let sources =
        [SettledBy::Single, SettledBy::Agreement, SettledBy::Arbitration, SettledBy::Vote];
    let key = sources.into_iter().filter(used);
    let figure = Figure {
        title: "",
        description: "The share of the notes that a stage saw, by who settled it: agreement, or a third agent.",
        reach: &[0.0, 1.0],
        key: key.map(|source| Key::series(source as usize, source.in_words())).collect(),
    };
    of_notes(figure, recipe, results, rows)
}
